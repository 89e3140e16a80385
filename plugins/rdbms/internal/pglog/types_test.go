package pglog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/sdk/batch"
)

// allTypes are columns with values at the limits of each type, as the server reads
// them.
var allTypes = []struct {
	name, sql string
	want      batch.Type
	values    []string
}{
	{"bool", "bool", batch.Bool, []string{"true", "false"}},
	{"i2", "smallint", batch.Int16, []string{"-32768", "32767", "0"}},
	{"i4", "int", batch.Int32, []string{"-2147483648", "2147483647"}},
	{"i8", "bigint", batch.Int64, []string{"-9223372036854775808", "9223372036854775807"}},
	{"oid", "oid", batch.Uint32, []string{"0", "4294967295"}},
	{"f4", "real", batch.Float32, []string{"'NaN'", "'Infinity'", "'-Infinity'", "1.1754944e-38", "3.4028235e38", "-0.0::float4", "0.1", "1e-45"}},
	{"f8", "double precision", batch.Float64, []string{"'NaN'", "'Infinity'", "'-Infinity'", "2.2250738585072014e-308", "1.7976931348623157e308", "'-0'", "0.1", "5e-324"}},
	{"num", "numeric", batch.Decimal, []string{"'NaN'", "'Infinity'", "'-Infinity'", "0", "-0.000", "1.2300", "1e100", "-99999999999999999999999999999999999999.99999999999999999999999999"}},
	{"num52", "numeric(5,2)", batch.Decimal, []string{"-999.99", "1.5", "'NaN'"}},
	{"num3m", "numeric(3,-2)", batch.Decimal, []string{"12300", "-99900"}},
	{"money", "money", batch.Native, []string{"'-92233720368547758.08'", "'1.50'"}},
	{"txt", "text", batch.String, []string{"''", "'NULL'", `E'a\\b\n\t\'"'`, "'😀é'", "repeat('long', 3000)"}},
	{"vc", "varchar(10)", batch.String, []string{"'0123456789'", "''"}},
	{"ch", "char(5)", batch.String, []string{"'ab'", "''"}},
	{"nam", "name", batch.String, []string{"'n'"}},
	{"qch", `"char"`, batch.String, []string{"'x'", "''"}},
	{"bin", "bytea", batch.Bytes, []string{`''`, `'\x00ff5c27'`, "decode(repeat('ab', 3000), 'hex')"}},
	{"dat", "date", batch.Date, []string{"'infinity'", "'-infinity'", "'4713-01-01 BC'", "'0001-12-31 BC'", "'0001-01-01'", "'1582-10-10'", "'9999-12-31'", "'294276-12-31'", "'4194303-01-01'", "'5874897-12-31'"}},
	{"tim", "time", batch.Time, []string{"'00:00'", "'24:00:00'", "'23:59:59.999999'"}},
	{"tim0", "time(0)", batch.Time, []string{"'12:34:56.7'"}},
	{"ttz", "timetz", batch.TimeTZ, []string{"'00:00+15:59:59'", "'24:00:00-15:59'", "'12:34:56.000001+05:30'"}},
	{"ts", "timestamp", batch.DateTime, []string{"'infinity'", "'-infinity'", "'4713-01-01 00:00:00 BC'", "'0001-12-31 23:59:59.999999 BC'", "'2026-02-28 12:00:00.000001'", "'131071-12-31'", "'294276-12-31 23:59:59.999999'"}},
	{"ts0", "timestamp(0)", batch.DateTime, []string{"'2026-02-28 12:00:00.6'"}},
	{"tsz", "timestamptz", batch.Timestamp, []string{"'infinity'", "'-infinity'", "'4713-01-01 00:00:00+00 BC'", "'0001-12-31 23:59:59.999999+00 BC'", "'1970-01-01 00:00:00+00'", "'2026-02-28 12:00:00.000001-07:30'", "'294276-12-31 23:59:59.999999+00'"}},
	{"ivl", "interval", batch.Interval, []string{"'0'", "'-178000000 years'", "'178000000 years'", "'1 year -2 months 3 days -04:05:06.789'", "'-0.000001 seconds'", "'-1 month 1 day -0.5 seconds'", "'2562047788:00:54.775807'"}},
	{"uid", "uuid", batch.UUID, []string{"'00000000-0000-0000-0000-000000000000'", "'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'"}},
	{"js", "json", batch.JSON, []string{`'{"a": 1, "a" :2, "n": 1e400}'`, "'null'", "' [1,  2]'"}},
	{"jsb", "jsonb", batch.JSON, []string{`'{"b": 1, "a": [1.0, 12345678901234567890.123]}'`, `'"x"'`}},
	{"xm", "xml", batch.Native, []string{"'<a>b</a>'"}},
	{"ine", "inet", batch.Inet, []string{"'10.0.0.1'", "'10.0.0.1/8'", "'::ffff:1.2.3.4/96'"}},
	{"cid", "cidr", batch.Inet, []string{"'10.0.0.0/8'", "'::/0'"}},
	{"mac", "macaddr", batch.Native, []string{"'08:00:2b:01:02:03'"}},
	{"mac8", "macaddr8", batch.Native, []string{"'08:00:2b:01:02:03:04:05'"}},
	{"bt", "bit(11)", batch.Bit, []string{"B'10000000001'", "B'00000000000'"}},
	{"bt1", "bit", batch.Bit, []string{"B'1'"}},
	{"vbt", "varbit", batch.Native, []string{"B''", "B'10101'"}},
	{"enu", "mood", batch.Enum, []string{"'sad'", `'very "happy"'`}},
	{"dom", "posint", batch.Int32, []string{"7"}},
	{"domt", "shorttext", batch.String, []string{"'abc'"}},
	{"ran", "int4range", batch.Native, []string{"'[1,5)'", "'empty'", "'(,)'"}},
	{"mran", "nummultirange", batch.Native, []string{"'{[1,2),(3,4]}'"}},
	{"tsr", "tstzrange", batch.Native, []string{"'[2026-01-01 00:00:00+00,infinity)'"}},
	{"comp", "pair", batch.Native, []string{`ROW(1, 'a "q" , b')`, "ROW(NULL, NULL)"}},
	{"tsv", "tsvector", batch.Native, []string{`'''a''''b'':1A cat:3'`}},
	{"tsq", "tsquery", batch.Native, []string{"'fat & (rat | !cat)'"}},
	{"pt", "point", batch.Native, []string{"'(1.5,-2)'"}},
	{"bx", "box", batch.Native, []string{"'(2,2),(0,0)'"}},
	{"lsn", "pg_lsn", batch.Native, []string{"'16/B374D848'"}},
	{"reg", "regclass", batch.Native, []string{"'pg_class'"}},
	{"jp", "jsonpath", batch.Native, []string{"'$.a[*] ? (@ > 1)'"}},
	{"hs", "public.hstore", batch.Native, []string{`'a=>1, "b c"=>NULL'`}},
	{"cit", "public.citext", batch.String, []string{"'AbC'"}},
	{"ai", "int[]", batch.Array, []string{"'{}'", "'{1,NULL,-3}'", "'[2:3][-1:0]={{1,2},{3,4}}'", "'{{{1},{2}},{{3},{NULL}}}'"}},
	{"at", "text[]", batch.Array, []string{`'{"a b","c\"d\\e","NULL",NULL,"{x}",""," "}'`}},
	{"an", "numeric(6,2)[]", batch.Array, []string{"'{1.5,NaN}'"}},
	{"ats", "timestamp[]", batch.Array, []string{"'{infinity,2026-01-01}'", "'{294276-01-01}'"}},
	{"ab", "bytea[]", batch.Array, []string{`ARRAY['\x00ff'::bytea]`}},
	{"au", "uuid[]", batch.Array, []string{"'{f81d4fae-7dec-11d0-a765-00a0c91e6bf6}'"}},
	{"abx", "box[]", batch.Array, []string{"'{(2,2),(0,0);(1,1),(0,0)}'"}},
	{"ae", "mood[]", batch.Array, []string{`'{sad,"very \"happy\""}'`}},
	{"ac", "pair[]", batch.Array, []string{`ARRAY[ROW(1, 'x,y')::pair]`}},
	{"aj", "jsonb[]", batch.Array, []string{`ARRAY['{"a": "b,c"}'::jsonb]`}},
	{"abo", "bool[]", batch.Array, []string{"'{t,f,NULL}'"}},
	{"aiv", "interval[]", batch.Array, []string{"'{1 day,-00:00:01}'"}},
}

// TestTypes moves each value of each type through the snapshot and through the log,
// and lets the server compare.
func TestTypes(t *testing.T) {
	srv := server(t, "-c", "log_min_messages=warning")
	var def, names []string
	most := 0
	for _, c := range allTypes {
		def = append(def, c.name+" "+c.sql)
		names = append(names, c.name)
		most = max(most, len(c.values))
	}
	var rows strings.Builder
	for i := range most {
		vals := make([]string, len(allTypes))
		for k, c := range allTypes {
			vals[k] = "NULL"
			if i < len(c.values) {
				vals[k] = c.values[i]
			}
		}
		fmt.Fprintf(&rows, "INSERT INTO public.types (%s) VALUES (%s);\n", strings.Join(names, ","), strings.Join(vals, ","))
	}
	sqlText(srv, `CREATE EXTENSION IF NOT EXISTS hstore; CREATE EXTENSION IF NOT EXISTS citext;
		CREATE TYPE mood AS ENUM ('sad', 'very "happy"'); CREATE DOMAIN posint AS int CHECK (VALUE > 0); CREATE DOMAIN shorttext AS varchar(5); CREATE TYPE pair AS (a int, b text);
		CREATE TABLE types (id serial PRIMARY KEY, `+strings.Join(def, ", ")+`, gen int GENERATED ALWAYS AS (i4 / 2) STORED);`)
	sqlText(srv, rows.String())
	tg := newTarget(t)
	s := tg.mustOpen(Config{URL: url(srv)})
	defer s.close()
	s.caughtUp(srv)
	tg.equal(srv, "public.types")
	if got := len(tg.tables["public.types"].rows); got != most {
		t.Fatalf("got %d rows, want %d", got, most)
	}
	sqlText(srv, rows.String()+"UPDATE types SET id = id + 1000 WHERE id <= 5;")
	s.caughtUp(srv)
	tg.equal(srv, "public.types")
	schema := tg.tables["public.types"].schema
	for _, c := range allTypes {
		if i := schema.Column(c.name); i < 0 || schema.Columns[i].Type != c.want {
			t.Errorf("column %s %s: got %+v, want type %s", c.name, c.sql, schema.Columns[max(i, 0)], c.want)
		}
	}
	if schema.Column("gen") >= 0 {
		t.Error("the generated column is there, which the log does not hold")
	}
}
