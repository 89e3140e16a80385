package scan

import "github.com/datalink-go/datalink/sdk"

// CheckTables says of tables what a user should know before they are copied.
func CheckTables(tables []*Table) []sdk.Finding {
	var out []sdk.Finding
	if len(tables) == 0 {
		out = append(out, sdk.Finding{Severity: sdk.Error, Subject: "tables", Message: "no table matches", Advice: "names are namespace.table"})
	}
	for _, t := range tables {
		if len(t.Schema.Key) == 0 {
			out = append(out, sdk.Finding{
				Severity: sdk.Warning, Subject: t.Schema.Name(), Message: "the table has no key: it is copied in one piece, and again from its beginning after an interruption; the target's table is emptied before",
				Advice: "add a primary key where the table is large",
			})
		}
	}
	return out
}
