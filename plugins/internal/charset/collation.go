package charset

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

//go:embed collations.txt
var collationList string

// Collation is a collation and its character set.
type Collation struct {
	Name    string
	Charset string
}

type list struct {
	byID   map[uint32]Collation
	byName map[string]Collation
}

var collations = sync.OnceValue(func() *list {
	l := &list{map[uint32]Collation{}, map[string]Collation{}}
	for line := range strings.Lines(collationList) {
		f := strings.Fields(line)
		id, _ := strconv.ParseUint(f[0], 10, 32)
		c := Collation{f[1], f[2]}
		l.byID[uint32(id)] = c
		l.byName[c.Name] = c
	}
	return l
})

// ByID returns the collation with the number that the log uses.
func ByID(id uint32) (Collation, bool) {
	c, ok := collations().byID[id]
	return c, ok
}

// ByName returns the collation with that name. The names of character set utf8
// are those of utf8mb3.
func ByName(name string) (Collation, bool) {
	name = strings.ToLower(name)
	if c, ok := collations().byName[name]; ok {
		return c, true
	}
	if rest, ok := strings.CutPrefix(name, "utf8_"); ok {
		return ByName("utf8mb3_" + rest)
	}
	// MariaDB's short names of the collations that several character sets share.
	if strings.HasPrefix(name, "uca1400_") {
		return ByName("utf8mb4_" + name)
	}
	return Collation{}, false
}

// Name returns the name in lower case by which this package knows a character
// set, and whether it knows it.
func Name(charset string) (string, bool) {
	charset = strings.ToLower(charset)
	if charset == "utf8" {
		charset = "utf8mb3"
	}
	_, ok := maxLen[charset]
	return charset, ok
}

// Default returns the default collation of a character set; MariaDB's and
// MySQL's differ for utf8mb4.
func Default(charset string, maria bool) string {
	switch charset {
	case "utf8mb4":
		if maria {
			return "utf8mb4_general_ci"
		}
		return "utf8mb4_0900_ai_ci"
	case "binary":
		return "binary"
	}
	if c, ok := defaults[charset]; ok {
		return c
	}
	return charset + "_general_ci"
}

var defaults = map[string]string{
	"big5": "big5_chinese_ci", "cp932": "cp932_japanese_ci", "dec8": "dec8_swedish_ci", "eucjpms": "eucjpms_japanese_ci",
	"euckr": "euckr_korean_ci", "gb18030": "gb18030_chinese_ci", "gb2312": "gb2312_chinese_ci", "gbk": "gbk_chinese_ci",
	"hp8": "hp8_english_ci", "latin1": "latin1_swedish_ci", "latin5": "latin5_turkish_ci", "sjis": "sjis_japanese_ci",
	"swe7": "swe7_swedish_ci", "tis620": "tis620_thai_ci", "ujis": "ujis_japanese_ci",
}

// MaxLen returns the bytes of the longest character, and 1 for a character set
// that is not known.
func MaxLen(charset string) int {
	if n := maxLen[charset]; n > 0 {
		return n
	}
	return 1
}

var maxLen = map[string]int{
	"armscii8": 1, "ascii": 1, "big5": 2, "binary": 1, "cp1250": 1, "cp1251": 1, "cp1256": 1, "cp1257": 1, "cp850": 1,
	"cp852": 1, "cp866": 1, "cp932": 2, "dec8": 1, "eucjpms": 3, "euckr": 2, "gb18030": 4, "gb2312": 2, "gbk": 2,
	"geostd8": 1, "greek": 1, "hebrew": 1, "hp8": 1, "keybcs2": 1, "koi8r": 1, "koi8u": 1, "latin1": 1, "latin2": 1,
	"latin5": 1, "latin7": 1, "macce": 1, "macroman": 1, "sjis": 2, "swe7": 1, "tis620": 1, "ucs2": 2, "ujis": 3,
	"utf16": 4, "utf16le": 4, "utf32": 4, "utf8mb3": 3, "utf8mb4": 4,
}
