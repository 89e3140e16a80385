package alltypes

var binaries = []Case{
	{Name: "binary_4", Type: "BINARY(4)", Form: Raw, Values: []string{"x'01020000'", "x''", "x'00000000'", "x'20202020'", "x'FFFFFFFF'", "'a'"}},
	{Name: "binary_16", Type: "BINARY(16)", Form: Raw, Values: []string{"x'6CCD780CBABA1026956454FDA9C87800'", "x'00'"}},
	{Name: "binary_255", Type: "BINARY(255)", Form: Raw, Values: []string{"REPEAT(x'FF', 255)", "x'FF00'"}},
	{Name: "varbinary_20", Type: "VARBINARY(20)", Form: Raw, Values: []string{"x'01020000'", "x''", "x'00'", "x'FF20'"}},
	{Name: "varbinary_300", Type: "VARBINARY(300)", Form: Raw, Values: []string{"REPEAT(x'00FF', 150)", "x'00'"}},
	{Name: "tinyblob", Type: "TINYBLOB", Form: Raw, Values: []string{"x''", "REPEAT(x'00', 255)"}},
	{Name: "blob_", Type: "BLOB", Form: Raw, Values: []string{"x''", "REPEAT(x'80FF', 32767)"}},
	{Name: "mediumblob", Type: "MEDIUMBLOB", Form: Raw, Values: []string{"x''", "REPEAT(x'C328', 40000)"}},
	{Name: "longblob", Type: "LONGBLOB", Form: Raw, Values: []string{"x''", "REPEAT(x'C328', 100000)"}},
	{Name: "char_byte", Type: "CHAR(3) BYTE", Form: Raw, Values: []string{"x'01'", "x'FFFFFF'"}},
	{Name: "compr_varchar", Only: MariaDB, Type: "VARCHAR(5000) COMPRESSED", Form: Text, Values: []string{"''", "'short'", "REPEAT('abc é', 500)", `'a\0b'`}},
	{Name: "compr_text", Only: MariaDB, Type: "TEXT COMPRESSED", Form: Text, Values: []string{"''", "REPEAT('男', 5000)"}},
	{Name: "compr_blob", Only: MariaDB, Type: "MEDIUMBLOB COMPRESSED", Form: Raw, Values: []string{"x''", "REPEAT(x'00FF', 50000)", "x'00'"}},
	{Name: "compr_varbinary", Only: MariaDB, Type: "VARBINARY(3000) COMPRESSED", Form: Raw, Values: []string{"x''", "REPEAT(x'00', 3000)"}},
}
