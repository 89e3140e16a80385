package alltypes

// The literals of TIMESTAMP are in the session's zone, which Create sets apart
// from UTC and from whole hours.
var times = []Case{
	{Name: "year_", Type: "YEAR", Values: []string{"0", "1901", "1970", "2155", "'0000'", "'70'"}},
	{Name: "date_", Type: "DATE", Values: []string{"'0000-00-00'", "'2020-00-10'", "'2020-10-00'", "'0000-05-00'", "'0001-01-01'", "'0099-12-31'", "'1000-01-01'", "'1969-12-31'", "'2024-02-29'", "'9999-12-31'"}},
	{Name: "date_nn", Type: "DATE NOT NULL", Values: []string{"'0000-00-00'", "'2024-02-29'"}},
	{Name: "time_0", Type: "TIME", Values: []string{"'00:00:00'", "'-00:00:01'", "'-507:48:27'", "'838:59:59'", "'-838:59:59'", "'23:59:59'"}},
	{Name: "time_1", Type: "TIME(1)", Values: []string{"'00:00:00.1'", "'-00:00:00.1'", "'-00:00:01.9'", "'12:34:56.0'"}},
	{Name: "time_2", Type: "TIME(2)", Values: []string{"'-00:00:00.01'", "'-12:34:56.99'", "'12:34:56.78'"}},
	{Name: "time_3", Type: "TIME(3)", Values: []string{"'-00:00:00.001'", "'-838:59:58.999'", "'00:00:00.999'"}},
	{Name: "time_4", Type: "TIME(4)", Values: []string{"'-00:00:00.0001'", "'01:02:03.4567'"}},
	{Name: "time_5", Type: "TIME(5)", Values: []string{"'-00:00:00.00001'", "'-01:02:03.45678'"}},
	{Name: "time_6", Type: "TIME(6)", Values: []string{"'-00:00:00.000001'", "'-12:34:56.789012'", "'838:59:59.000000'", "'-838:59:59.000000'", "'00:00:00.000001'"}},
	{Name: "datetime_0", Type: "DATETIME", Values: []string{"'0000-00-00 00:00:00'", "'0002-11-30 08:05:43'", "'0022-11-30 08:05:43'", "'0222-11-30 08:05:43'", "'2020-00-10 01:02:03'", "'9999-12-31 23:59:59'", "'1970-01-01 00:00:00'"}},
	{Name: "datetime_1", Type: "DATETIME(1)", Values: []string{"'2024-02-29 23:59:59.9'"}},
	{Name: "datetime_2", Type: "DATETIME(2)", Values: []string{"'2024-02-29 23:59:59.09'"}},
	{Name: "datetime_3", Type: "DATETIME(3)", Values: []string{"'0001-01-01 00:00:00.001'", "'2024-02-29 23:59:59.999'"}},
	{Name: "datetime_4", Type: "DATETIME(4)", Values: []string{"'2024-02-29 23:59:59.0009'"}},
	{Name: "datetime_5", Type: "DATETIME(5)", Values: []string{"'2024-02-29 23:59:59.00009'"}},
	{Name: "datetime_6", Type: "DATETIME(6)", Values: []string{"'0000-00-00 00:00:00.000000'", "'9999-12-31 23:59:59.999999'", "'1969-12-31 23:59:59.000001'"}},
	{Name: "datetime_nn", Type: "DATETIME NOT NULL", Values: []string{"'0000-00-00 00:00:00'", "'2024-02-29 00:00:00'"}},
	{Name: "timestamp_0", Type: "TIMESTAMP NULL", Values: []string{"'0000-00-00 00:00:00'", "'1970-01-01 03:30:01'", "'2038-01-19 06:44:07'", "'2025-02-17 18:11:25'", "'2024-03-31 02:30:00'"}},
	{Name: "timestamp_3", Type: "TIMESTAMP(3) NULL", Values: []string{"'0000-00-00 00:00:00'", "'1970-01-01 03:30:01.001'", "'2025-02-17 18:11:25.123'"}},
	{Name: "timestamp_6", Type: "TIMESTAMP(6) NULL", Values: []string{"'1970-01-01 03:30:01.000001'", "'2038-01-19 06:44:07.999999'", "'0000-00-00 00:00:00'"}},
	{Name: "timestamp_nn", Type: "TIMESTAMP NOT NULL DEFAULT '0000-00-00 00:00:00'", Values: []string{"'0000-00-00 00:00:00'", "'2025-02-17 18:11:25'"}},
	{
		Name: "timestamp_up", Type: "INT", Values: []string{"1", "2"},
		More: []Column{{"touched", "TIMESTAMP(2) NOT NULL DEFAULT CURRENT_TIMESTAMP(2) ON UPDATE CURRENT_TIMESTAMP(2)", Chars}},
	},
}
