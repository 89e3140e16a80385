package alltypes

// kinds are the geometry types with a value of each.
var kinds = []struct{ name, wkt string }{
	{"point", "POINT(0 0)"},
	{"linestring", "LINESTRING(0 0,1.5 -2.5,3e10 4e-10)"},
	{"polygon", "POLYGON((0 0,10 0,10 10,0 10,0 0),(1 1,2 1,2 2,1 2,1 1))"},
	{"multipoint", "MULTIPOINT(0 0,1 1)"},
	{"multilinestring", "MULTILINESTRING((0 0,1 1),(2 2,3 3))"},
	{"multipolygon", "MULTIPOLYGON(((0 0,1 0,1 1,0 0)),((5 5,6 5,6 6,5 5)))"},
	{"geometrycollection", "GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))"},
}

func shapes() []Case {
	all := []string{"ST_GeomFromText('GEOMETRYCOLLECTION EMPTY')"}
	var out []Case
	for _, k := range kinds {
		plain, srid := "ST_GeomFromText('"+k.wkt+"')", "ST_GeomFromText('"+k.wkt+"', 3857)"
		out = append(out, Case{Name: "g_" + k.name, Type: k.name, Form: Raw, Values: []string{plain, srid}})
		all = append(all, plain, srid)
	}
	return append(
		out,
		Case{Name: "g_geometry", Type: "GEOMETRY", Form: Raw, Values: append(all, "ST_GeomFromText('POINT(48.2 16.37)', 4326)")},
		Case{Name: "g_notnull", Type: "POINT NOT NULL", Form: Raw, Values: []string{"ST_GeomFromText('POINT(0 0)')"}},
		Case{Name: "g_srid", Only: MySQL, Type: "POINT NOT NULL SRID 4326", Form: Raw, Values: []string{"ST_GeomFromText('POINT(48.2 16.37)', 4326)"}, Keys: ", SPATIAL KEY k (v)"},
	)
}
