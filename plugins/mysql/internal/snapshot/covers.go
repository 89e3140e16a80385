package snapshot

import "github.com/datalink-go/datalink/plugins/mysql/internal/gtid"

// covers reports whether the set a holds all of b.
func covers(a, b string) bool {
	x, err := gtid.ParseSet(a)
	if err != nil {
		return false
	}
	y, err := gtid.ParseSet(b)
	return err == nil && y.Within(&x)
}
