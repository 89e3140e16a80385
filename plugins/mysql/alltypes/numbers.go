package alltypes

import "strings"

var (
	nines65 = strings.Repeat("9", 65)
	nines35 = strings.Repeat("9", 35) + "." + strings.Repeat("9", 30)
)

var numbers = []Case{
	{Name: "tinyint", Type: "TINYINT", Values: []string{"0", "1", "-1", "-128", "127"}},
	{Name: "tinyint_u", Type: "TINYINT UNSIGNED", Values: []string{"0", "127", "128", "255"}},
	{Name: "boolean", Type: "BOOLEAN", Values: []string{"TRUE", "FALSE", "-5"}},
	{Name: "smallint", Type: "SMALLINT", Values: []string{"0", "-32768", "32767"}},
	{Name: "smallint_u", Type: "SMALLINT UNSIGNED", Values: []string{"0", "32768", "65535"}},
	{Name: "mediumint", Type: "MEDIUMINT", Values: []string{"0", "-8388608", "8388607", "-1"}},
	{Name: "mediumint_u", Type: "MEDIUMINT UNSIGNED", Values: []string{"0", "8388608", "16777215"}},
	{Name: "int_", Type: "INT", Values: []string{"0", "-2147483648", "2147483647", "-1"}},
	{Name: "int_u", Type: "INT UNSIGNED", Values: []string{"0", "2147483648", "4294967295"}},
	{Name: "int_zf", Type: "INT(8) ZEROFILL", Form: Number, Values: []string{"0", "42", "4294967295"}},
	{Name: "bigint", Type: "BIGINT", Values: []string{"0", "-9223372036854775808", "9223372036854775807", "-1"}},
	{Name: "bigint_u", Type: "BIGINT UNSIGNED", Values: []string{"0", "3355", "9223372036854775808", "18446744073709551615"}},
	{Name: "bigint_zf", Type: "BIGINT(20) UNSIGNED ZEROFILL", Form: Number, Values: []string{"7", "18446744073709551615"}},
	{Name: "serial", Type: "BIGINT UNSIGNED NOT NULL UNIQUE", Values: []string{"1", "18446744073709551614"}},
	{Name: "decimal_0", Type: "DECIMAL(65,0)", Values: []string{"0", nines65, "-" + nines65, "1"}},
	{Name: "decimal_30", Type: "DECIMAL(65,30)", Values: []string{"0", nines35, "-" + nines35, "0.000000000000000000000000000001", "-0.000000000000000000000000000001", "12345678901234567890.123456789"}},
	{Name: "decimal_u", Type: "DECIMAL(30,10) UNSIGNED", Values: []string{"0", "99999999999999999999.9999999999", "1.5"}},
	{Name: "decimal_12", Type: "DECIMAL(12,4)", Values: []string{"1.23", "-1.23", "99999999.9999", "-0.0001"}},
	{Name: "decimal_13", Type: "DECIMAL(13,4)", Values: []string{"1.23", "-1.23", "999999999.9999"}},
	{Name: "decimal_1", Type: "DECIMAL(1,1)", Values: []string{"0.9", "-0.9", "0"}},
	{Name: "decimal_9", Type: "DECIMAL(9,9)", Values: []string{"0.123456789", "-0.999999999"}},
	{Name: "decimal_18", Type: "DECIMAL(18,9)", Values: []string{"123456789.123456789", "-999999999.000000001", "0.1"}},
	{Name: "float_", Type: "FLOAT", Form: Float, Values: []string{"0", "-0.0", "0.1", "3.4028234e38", "-3.4028234e38", "1.17549435e-38", "1e-45", "16777217", "-1.5"}},
	{Name: "float_u", Type: "FLOAT UNSIGNED", Form: Float, Values: []string{"0", "123456.789"}},
	{Name: "float_7_3", Type: "FLOAT(7,3)", Form: Float, Values: []string{"1234.567", "-0.001"}},
	{Name: "double_", Type: "DOUBLE", Form: Float, Values: []string{"0", "0.1", "1.7976931348623157e308", "-1.7976931348623157e308", "2.2250738585072014e-308", "4.9e-324", "9007199254740993", "1e15", "1e-15", "123456789012345680000"}},
	{Name: "double_10_2", Type: "DOUBLE(10,2)", Form: Float, Values: []string{"12345678.90", "-0.01"}},
	{Name: "bit_1", Type: "BIT(1)", Form: Number, Values: []string{"b'0'", "b'1'"}},
	{Name: "bit_9", Type: "BIT(9)", Form: Number, Values: []string{"b'0'", "b'111111111'", "b'100000000'", "b'1'"}},
	{Name: "bit_64", Type: "BIT(64)", Form: Number, Values: []string{"b'0'", "0xFFFFFFFFFFFFFFFF", "0x8000000000000000", "0x0102030405060708"}},
}
