package alltypes

// documents are JSON values: MySQL stores its own binary form, MariaDB the text.
var documents = []Case{
	{Name: "json_", Only: MySQL, Type: "JSON", Form: Text, Values: append([]string{
		"CAST(2147483648 AS JSON)", "JSON_OBJECT('value', CAST(2147483648 AS UNSIGNED))",
		// Opaque values: types that JSON has no form for.
		"CAST(CAST('2024-02-29' AS DATE) AS JSON)", "CAST(CAST('-12:34:56.789012' AS TIME(6)) AS JSON)", "CAST(CAST('2024-02-29 01:02:03.5' AS DATETIME(1)) AS JSON)",
		"CAST(TIMESTAMP('2024-02-29 01:02:03') AS JSON)", "CAST(YEAR('2024-02-29') AS JSON)", "CAST(CAST(1.50 AS DECIMAL(30,20)) AS JSON)",
		"JSON_OBJECT('b', CAST(x'00FF80' AS BINARY))", "JSON_ARRAY(b'101', x'FF')", "JSON_ARRAY(ST_GeomFromText('POINT(1 2)'))",
		"JSON_ARRAY(REPEAT('x', 70000))", "(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT JSON_ARRAYAGG(i) FROM n)",
		"(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT JSON_OBJECTAGG(CONCAT('k', i), REPEAT('v', i)) FROM n)",
	}, texts0...)},
	{Name: "json_m", Only: MariaDB, Type: "JSON", Form: Text, Values: texts0},
	{Name: "json_pos", Only: MySQL, Type: "JSON NOT NULL", Form: Text, Values: []string{`'{}'`, `'[]'`, `'{"k1":"男","k2":"18606520112","cardNumber":"","k3":"Peter"}'`}},
}

// texts0 are documents written as text.
var texts0 = []string{
	`'null'`, `'true'`, `'false'`, `'0'`, `'-1'`, `'""'`, `'{}'`, `'[]'`, `'[[],{}]'`,
	`'18446744073709551615'`, `'-9223372036854775808'`, `'18446744073709551616'`, `'123456789012345678901234567890'`,
	`'1.0'`, `'0.1'`, `'1e300'`, `'-0.0'`, `'5e-324'`, `'1e15'`, `'1e-7'`, `'123456.789e3'`,
	`'{"a": 1, "a": 2}'`, `'{"b": 1, "aa": 2, "": 3}'`, `'{"k1":"男","cardNumber":"","k3":"Peter"}'`,
	`'"\\u0000 \\u001f \\" \\\\ / \\b\\f\\n\\r\\t é 😀"'`, `'"😀"'`, `'{"a\\"b": [1, "x", null, {"y": [true]}]}'`,
	`'[32767, 32768, -32768, -32769, 65535, 65536, 2147483647, 2147483648, -2147483648, -2147483649, 4294967296]'`,
}
