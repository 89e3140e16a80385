package alltypes

import (
	"fmt"
	"strings"
)

// samples are texts that the character sets of both servers can hold, and bytes
// that are well formed in the set and have no character in Unicode.
var samples = []struct {
	charset, text string
	unmapped      string // hexadecimal; "" = none
	only          Server
}{
	{"armscii8", "aԱբ", "", Both},
	{"ascii", "a~", "", Both},
	{"big5", "a中文", "C7F3", Both},
	{"cp1250", "aŁź", "", Both},
	{"cp1251", "aЖя", "", Both},
	{"cp1256", "aبپ", "", Both},
	{"cp1257", "aĄž", "", Both},
	{"cp850", "aéß", "", Both},
	{"cp852", "aŁé", "", Both},
	{"cp866", "aЖя", "", Both},
	{"cp932", "aあ髙", "F040", Both},
	{"dec8", "aéß", "", Both},
	{"eucjpms", "aあ髙", "", Both},
	{"euckr", "a한글", "", Both},
	{"gb18030", "a中😀é", "", MySQL},
	{"gb2312", "a中文", "", Both},
	{"gbk", "a中文", "A2A1", Both},
	{"geostd8", "aაბ", "", Both},
	{"greek", "aαω", "", Both},
	{"hebrew", "aאב", "", Both},
	{"hp8", "aéß", "", Both},
	{"keybcs2", "aČž", "", Both},
	{"koi8r", "aЖя", "", Both},
	{"koi8u", "aЄї", "", Both},
	{"latin1", "aé€ÿ", "", Both},
	{"latin2", "aŁź", "", Both},
	{"latin5", "aĞş", "", Both},
	{"latin7", "aĄž", "", Both},
	{"macce", "aŁź", "", Both},
	{"macroman", "aéß", "", Both},
	{"sjis", "aあ字", "F040", Both},
	{"swe7", "aÅö", "", Both},
	{"tis620", "aกข", "", Both},
	{"ucs2", "aé男", "", Both},
	{"ujis", "aあ字", "", Both},
	{"utf16", "aé男😀", "", Both},
	{"utf16le", "aé男😀", "", Both},
	{"utf32", "aé男😀", "", Both},
	{"utf8mb3", "aé男", "", Both},
	{"utf8mb4", "aé男😀", "", Both},
}

func texts() []Case {
	odd := []string{"''", "' '", "'a '", `'a\0b'`, `'\\\'"'`, "'\n\t\r'", "'é男😀'"}
	long := func(n int) string { return fmt.Sprintf("REPEAT('x', %d)", n) }
	out := []Case{
		{Name: "char_1", Type: "CHAR(1)", Form: Text, Values: []string{"''", "'é'", "'😀'"}},
		{Name: "char_0", Type: "CHAR(0)", Form: Text, Values: []string{"''"}},
		{Name: "char_255", Type: "CHAR(255)", Form: Text, Values: append([]string{long(255), "REPEAT('男', 255)", "REPEAT('😀', 255)"}, odd...)},
		{Name: "varchar_20", Type: "VARCHAR(20)", Form: Text, Values: append([]string{long(20)}, odd...)},
		{Name: "varchar_0", Type: "VARCHAR(0)", Form: Text, Values: []string{"''"}},
		{Name: "varchar_63", Type: "VARCHAR(63)", Form: Text, Values: []string{"REPEAT('😀', 63)"}},
		{Name: "varchar_64", Type: "VARCHAR(64)", Form: Text, Values: []string{"REPEAT('😀', 64)"}},
		{Name: "varchar_10000", Type: "VARCHAR(10000)", Form: Text, Values: []string{"REPEAT('男', 10000)", "'x'"}},
		{Name: "nchar", Type: "NATIONAL VARCHAR(10)", Form: Text, Values: []string{"'é男'"}},
		{Name: "tinytext", Type: "TINYTEXT", Form: Text, Values: append([]string{long(255)}, odd...)},
		{Name: "text_", Type: "TEXT", Form: Text, Values: append([]string{long(65535)}, odd...)},
		{Name: "mediumtext", Type: "MEDIUMTEXT", Form: Text, Values: append([]string{long(70000)}, odd...)},
		{Name: "longtext", Type: "LONGTEXT", Form: Text, Values: append([]string{long(200000)}, odd...)},
		{Name: "text_ci", Type: "VARCHAR(20) COLLATE utf8mb4_bin", Form: Text, Values: []string{"'Aa'", "'aA'"}},
		{Name: "enum_", Type: "ENUM('a','é','with ''quote','with,comma','')", Form: Text, Values: []string{"'a'", "'é'", "'with ''quote'", "'with,comma'", "''", "'zzz'", "1"}},
		{Name: "enum_nn", Type: "ENUM('active','inactive') NOT NULL", Form: Text, Values: []string{"'active'", "'zzz'"}},
		{Name: "enum_latin1", Type: "ENUM('é','b') CHARACTER SET latin1", Form: Text, Values: []string{"'é'", "'b'"}},
		{Name: "enum_300", Type: "ENUM('l0'" + labels(1, 300) + ")", Form: Text, Values: []string{"'l0'", "'l254'", "'l255'", "'l256'", "'l299'"}},
		{Name: "set_", Type: "SET('a','é','c''d')", Form: Text, Values: []string{"''", "'a'", "'a,é'", "'a,é,c''d'", "4"}},
		{Name: "set_9", Type: "SET('l0'" + labels(1, 9) + ")", Form: Text, Values: []string{"'l0'", "'l8'", "511"}},
		{Name: "set_64", Type: "SET('l0'" + labels(1, 64) + ")", Form: Text, Values: []string{"''", "'l63'", "'l0,l63'", "18446744073709551615"}},
	}
	for _, s := range samples {
		c := Case{
			Name: "cs_" + s.charset, Only: s.only, Type: "VARCHAR(60) CHARACTER SET " + s.charset, Form: Text,
			Values: []string{"'" + s.text + "'", "''", "'a '", "CONVERT('" + s.text + "' USING " + s.charset + ")"},
			More:   []Column{{"c", "CHAR(20) CHARACTER SET " + s.charset + " AS (LEFT(v, 20)) STORED", Text}},
		}
		if s.charset == "utf16le" || s.charset == "utf32" || s.charset == "ucs2" || s.charset == "utf16" {
			c.Values = append(c.Values, "REPEAT('a', 60)")
		}
		if s.unmapped != "" {
			c.Unmapped = true
			c.Values = append(c.Values, fmt.Sprintf("_%s x'61%s'", s.charset, s.unmapped))
		}
		out = append(out, c)
	}
	return out
}

func labels(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, ",'l%d'", i)
	}
	return b.String()
}
