package alltypes

// others are types of one server, and columns that the server fills or hides.
var others = []Case{
	{Name: "vector_", Only: MySQL, Type: "VECTOR(3)", Form: Raw, Values: []string{"TO_VECTOR('[1,-2.5,3e-3]')", "TO_VECTOR('[0,-1,0]')", "TO_VECTOR('[1e37,-1e-37,0.1]')"}},
	{Name: "uuid_", Only: MariaDB, Type: "UUID", Values: []string{
		"'6ccd780c-baba-1026-9564-5b8c656024db'", "'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
		"'123e4567-e89b-42d3-a456-426614174000'", "'017f22e2-79b0-7cc3-98c4-dc0c0c07398f'", "'123e4567-e89b-12d3-0456-426614174000'", "'123e4567-e89b-52d3-c456-426614170000'",
	}},
	{Name: "inet4_", Only: MariaDB, Type: "INET4", Values: []string{"'0.0.0.0'", "'255.255.255.255'", "'192.168.0.1'", "'10.0.0.0'"}},
	{Name: "inet6_", Only: MariaDB, Type: "INET6", Values: []string{"'::'", "'::1'", "'2001:db8::'", "'2001:db8:0:0:1:0:0:1'", "'::ffff:192.168.0.1'", "'::192.168.0.1'", "'fe80::1:0:0'", "'1:0:0:2:0:0:0:3'", "'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'", "'::1:0'", "'::0.1.0.0'"}},
	{Name: "generated", Type: "INT", Values: []string{"1", "-7"}, More: []Column{
		{"s", "BIGINT AS (v * 3) STORED", Chars},
		{"g", "BIGINT AS (v * 2) VIRTUAL", Chars},
		{"j", "VARCHAR(40) AS (CONCAT('é', v)) STORED", Text},
	}},
	{Name: "invisible", Type: "INT", Values: []string{"1", "2"}, More: []Column{{"h", "INT DEFAULT 7 INVISIBLE", Chars}, {"z", "INT DEFAULT 9", Chars}}},
	{Name: "functional", Only: MySQL, Type: "VARCHAR(20)", Form: Text, Values: []string{"'18606520112'", "'x'"}, More: []Column{{"z", "INT DEFAULT 9", Chars}}, Keys: ", KEY k ((RIGHT(v, 4))), KEY k2 ((LENGTH(v)))"},
	{Name: "defaults", Type: "INT", Values: []string{"1", "2"}, More: []Column{
		{"d", "DECIMAL(10,3) DEFAULT 1.5", Chars},
		{"e", "ENUM('a','b') DEFAULT 'b'", Text},
		{"t", "TIME NOT NULL DEFAULT '00:00:00'", Chars},
		{"b", "BIT(9) DEFAULT b'101'", Number},
		{"c", "CHAR(3) NOT NULL DEFAULT ''", Text},
		{"y", "YEAR DEFAULT 2024", Chars},
		{"bi", "BINARY(3) DEFAULT 'ab'", Raw},
	}},
}
