package endtoend

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKinds looks at single values that readers of this kind of log are known to
// get wrong. Each is a query on the target of a recording, with the right rows.
func TestKinds(t *testing.T) {
	for _, c := range []struct {
		id, name   string
		recordings []string
		query      string
		want       [][]string
	}{
		{"B002", "small value in an unsigned key", []string{"mysql97", "mysql97-minimal", "mariadb1011-nolog"}, `SELECT id FROM "numbers.bigkeys" ORDER BY v`, rows("3355|18446744073709551613")},
		{"B004", "unsigned number in a document, through a routine", []string{"mysql97"}, `SELECT doc FROM "docs.j" WHERE id = 37`, rows(`{"max": 18446744073709551615, "value": 2147483648}`)},
		{"B006", "label of an ENUM without full row metadata", []string{"mysql97-minimal", "mariadb1011-nolog", "mysql97"}, `SELECT e FROM "text.enums" WHERE id IN (2, 3) ORDER BY id`, rows("pending|inactive")},
		{"B007", "label that an ALTER added, and labels in another order", []string{"mysql97", "mariadb1011"}, `SELECT e FROM "ddl.e" ORDER BY id`, rows("a|c|c")},
		{"B008", "invalid ENUM value is empty and not NULL", []string{"mysql97", "mysql97-minimal"}, `SELECT e, en, (SELECT en FROM "text.enums" WHERE id = 3) FROM "text.enums" WHERE id = 4`, [][]string{{"", "", null}}},
		{"B010", "year zero", []string{"mysql97", "mysql97-minimal", "mariadb1011"}, `SELECT y FROM "times.years" WHERE id IN (1, 2, 6) ORDER BY id`, rows("0000|1901|0000")},
		{"B012", "negative times", []string{"mysql97", "mariadb1011"}, `SELECT t0, t6 FROM "times.clocks" WHERE id IN (1, 4) ORDER BY id`, [][]string{{"-00:00:01", "-00:00:00.000001"}, {"-507:48:27", "-12:34:56.789012"}}},
		{"B014", "years below 1000", []string{"mysql97", "mariadb1011"}, `SELECT dt FROM "times.dates" WHERE id IN (3, 4, 6) ORDER BY id`, rows("0002-11-30 08:05:43|0022-11-30 08:05:43|0222-11-30 08:05:43")},
		{"B016", "zero dates", []string{"mysql97", "mysql97-minimal", "mariadb1011"}, `SELECT d, dn, dt, ts FROM "times.dates" WHERE id = 1`, [][]string{{"0000-00-00", "0000-00-00", "0000-00-00 00:00:00", "0000-00-00 00:00:00"}}},
		{"B017", "zero timestamp stays zero", []string{"mysql97", "mariadb1011"}, `SELECT s0, s6 FROM "times.stamps" WHERE id = 3`, [][]string{{"0000-00-00 00:00:00", "0000-00-00 00:00:00.000000"}}},
		{"B018", "timestamp that the server keeps up to date", []string{"mysql97", "mariadb1011"}, `SELECT touched FROM "times.stamps" WHERE id IN (1, 4) ORDER BY id`, rows("2025-02-17 18:11:25.123|2025-02-18 18:11:25.500")},
		{"B019", "instants of sessions in other zones", []string{"mysql97", "mariadb1011"}, `SELECT s0 FROM "times.stamps" WHERE id IN (4, 5) ORDER BY id`, rows("2025-02-18 02:11:25|2025-02-17 12:41:25")},
		{"B022", "partly zero and zero defaults", []string{"mysql97", "mariadb1011"}, `SELECT a, b, d FROM "ddl.odd_defaults"`, [][]string{{"2020-00-10", "00:00:00", "0000-00-00 00:00:00"}}},
		{"B025", "decimals of 12 and 13 digits", []string{"mysql97", "mariadb1011-nolog"}, `SELECT d124, d134 FROM "numbers.decimals" WHERE id IN (1, 2) ORDER BY id`, [][]string{{"1.2300", "1.2300"}, {"-1.2300", "-1.2300"}}},
		{"B027", "empty text in a document", []string{"mysql97"}, `SELECT json_extract(doc, '$.cardNumber'), json_extract(doc, '$.k1') FROM "docs.j" WHERE id = 12`, [][]string{{"", "男"}}},
		{"B028", "document made of columns", []string{"mysql97"}, `SELECT remark FROM "docs.remarks" ORDER BY id`, [][]string{{`{"3000": 4, "0-1000": 1, "1000-2000": 2, "2000-3000": 3}`}, {`{"3000": -70000, "0-1000": -1, "1000-2000": null, "2000-3000": 70000}`}}},
		{"B031", "SRID before the WKB", []string{"mysql97", "mariadb1011"}, `SELECT p FROM "geo.shapes" WHERE id = 1`, rows("000000000101000000000000000000F83F00000000000004C0")},
		{"B032", "point at the origin", []string{"mysql97", "mariadb1011"}, `SELECT g FROM "geo.shapes" WHERE id = 1`, rows("00000000010100000000000000000000000000000000000000")},
		{"B033", "column with a fixed SRID", []string{"mysql97", "mysql97-minimal"}, `SELECT substr(location, 1, 4), name FROM "hidden.places" ORDER BY id`, [][]string{{"E6100000", "Wien"}, {"E6100000", "Sydney"}}},
		{"B034", "zeros at the end of BINARY(16), as key too", []string{"mysql97", "mysql97-minimal", "mariadb1011-nolog"}, `SELECT b16, (SELECT v FROM "text.uuids" WHERE id = x'11112222333344445555666600000000') FROM "text.binaries" WHERE id = 1`, [][]string{{"6CCD780CBABA1026956454FDA9C87800", "20"}}},
		{"B035", "zeros at the end of BINARY(4) and VARBINARY", []string{"mysql97", "mariadb1011-nolog"}, `SELECT b4, vb FROM "text.binaries" WHERE id = 1`, [][]string{{"01020000", "01020000"}}},
		{"B047", "JSON of MariaDB is text", []string{"mariadb1011"}, `SELECT foo, typeof(foo) FROM "docs.added"`, [][]string{{`{"a":1}`, "text"}}},
		{"B049", "column moved away and back", []string{"mysql97", "mariadb1011"}, `SELECT x, y, z FROM "ddl.moved" ORDER BY id`, [][]string{{"10", "20", "30"}, {"10", "20", "30"}, {"10", "20", "30"}}},
		{"B050", "table that is dropped later, and made anew", []string{"mysql97", "mariadb1011"}, `SELECT id, other FROM "ddl.test1"`, [][]string{{"1", "new"}}},
		{"B053", "hidden column of a functional index", []string{"mysql97", "mysql97-minimal"}, `SELECT *, (SELECT count(*) FROM pragma_table_info('hidden.functional')) FROM "hidden.functional" WHERE id = 1`, [][]string{{"1", "18606529999", "Graz", null, "4"}}},
		{"B054", "renamed table, then renamed key column", []string{"mysql97", "mariadb1011"}, `SELECT bID, v FROM "ddl.b" ORDER BY bID`, [][]string{{"1", "3"}, {"2", "2"}}},
		{"B055", "column after a name of the same statement", []string{"mysql97", "mariadb1011"}, `SELECT taskable_id, taskable_type FROM "ddl.tags" ORDER BY id`, [][]string{{"1", null}, {"2", "Task"}}},
		{"B058", "swap by one RENAME", []string{"mysql97", "mariadb1011"}, `SELECT id, w, v FROM "ddl.t1" ORDER BY id`, [][]string{{"1", "0", "1"}, {"2", "5", "20"}, {"3", "3", "3"}}},
		{"B060", "RENAME in the session's database, and to another", []string{"mysql97", "mariadb1011"}, `SELECT id FROM "ddl.moved_here" ORDER BY id`, rows("1|2|3")},
		{"B063", "columns called as words of SQL, names with a dash", []string{"mysql97", "mariadb1011"}, `SELECT "status", "order", "key" FROM "my-schema.my-table"`, [][]string{{"1", "2", "3"}}},
		{"B070", "equal values in different unique keys", []string{"mysql97", "mariadb1011-nolog"}, `SELECT a, b FROM "keyed.tb" ORDER BY a`, [][]string{{"1", "4"}, {"3", "2"}, {"4", "1"}}},
		{"B071", "chain of key changes", []string{"mysql97", "mysql97-compressed", "mariadb1011-nolog"}, `SELECT id, v FROM "keyed.chain" ORDER BY id`, [][]string{{"12", "one"}, {"13", "two"}, {"14", "three"}}},
		{"B072", "unique value that is freed and taken", []string{"mysql97", "mariadb1011-nolog"}, `SELECT id, handle, source_type FROM "keyed.handles" ORDER BY id`, [][]string{{"e", "h", "x"}, {"g", "dup", "s"}, {"m", "h", null}, {"n", "h", null}}},
		{"B073", "key change and the old key again", []string{"mysql97", "mysql97-imageminimal", "mariadb1011-nolog"}, `SELECT id, v FROM "keyed.reused" WHERE id < 5 ORDER BY id`, [][]string{{"1", "second"}, {"2", "first"}}},
		{"B074", "insert and update in one transaction, then delete and insert", []string{"mysql97", "mysql97-imageminimal"}, `SELECT id, v FROM "keyed.reused" WHERE id >= 5`, [][]string{{"5", "c"}}},
		{"B080", "rows without a key, with NULLs and duplicates", []string{"mysql97", "mariadb1011"}, `SELECT a, b, c FROM "keyed.keyless" ORDER BY a, b`, [][]string{{"1", "dup", null}, {"1", "one", null}, {"2", null, null}, {"3", "x", "0.5"}}},
		{"B081", "update of a row without a key, MariaDB", []string{"mariadb1011-imageminimal", "mariadb1011-imagenoblob"}, `SELECT a, t, b FROM "images.nokey"`, [][]string{{"1", "x", "1"}}},
		{"B083", "absent is not NULL", []string{"mysql97-imageminimal", "mysql97-minimalboth", "mariadb1011-imageminimal"}, `SELECT * FROM "images.tnull" ORDER BY id`, [][]string{{"1", null, "1", "4"}, {"30", null, "1", "7"}}},
		{"B085", "defaults that a minimal image leaves out", []string{"mysql97-imageminimal", "mysql97-minimalboth", "mariadb1011-imageminimal"}, `SELECT id, v, s FROM "images.dflt" ORDER BY id`, [][]string{{"1", "7", "x"}, {"2", null, "x"}, {"3", "7", "x"}}},
		{"B098", "compression that one session switches", []string{"mysql97-compressed"}, `SELECT id, substr(v, 1, 6) FROM "sc.t" ORDER BY id`, [][]string{{"1", "plain"}, {"2", "packed"}, {"3", "packed"}, {"5", "plain"}}},
		{"B122", "savepoint over tables of two engines", []string{"mariadb1011-mixed", "mysql97-nogtid"}, `SELECT 'i', id FROM "mixed.i" UNION ALL SELECT 'm', id FROM "mixed.m" ORDER BY 1, 2`, [][]string{{"i", "1"}, {"i", "3"}, {"m", "1"}, {"m", "2"}, {"m", "3"}}},
		{"B136", "delete of several rows by one event", []string{"mysql97", "mariadb1011-nolog"}, `SELECT id FROM "keyed.fast" ORDER BY id`, rows("1|23")},
		{"B137", "parts of a key that look like others when joined", []string{"mysql97", "mariadb1011-nolog"}, `SELECT a, b, v FROM "keyed.composite" WHERE v < 3 ORDER BY v`, [][]string{{"a|b", "c", "1"}, {"a", "b|c", "2"}}},
		{"B138", "delete and insert of one key at once", []string{"mysql97", "mariadb1011-nolog"}, `SELECT v FROM "keyed.fast" WHERE id = 1`, rows("3")},
		{"B021", "zero default in a table made under another mode", []string{"mysql97", "mariadb1011"}, `SELECT d FROM "ddl.odd_defaults"`, rows("0000-00-00 00:00:00")},
		{"B043", "NUL in text", []string{"mysql97", "mariadb1011"}, `SELECT v, hex(v) FROM "text.strings" WHERE id = 3`, [][]string{{`a\0b`, "610062"}}},
		{"B030", "differences of documents, switched on in a session", []string{"mysql97-partialjson"}, `SELECT json_extract(a, '$."odd key"'), json_extract(a, '$.v') FROM "pj.d" WHERE id = 40`, [][]string{{"z", "key changed"}}},
	} {
		for _, r := range c.recordings {
			t.Run(c.id+" "+c.name+"/"+r, func(t *testing.T) {
				got := query(t, recorded(t, r), c.query)
				if d := cmp.Diff(c.want, got, cmp.Comparer(same)); d != "" {
					t.Errorf("%s (-want +got):\n%s", c.query, d)
				}
			})
		}
	}
}

// rows are rows of one column.
func rows(cells string) (out [][]string) {
	for _, c := range strings.Split(strings.TrimPrefix(cells, "|"), "|") {
		out = append(out, []string{c})
	}
	return out
}
