package stack

import "testing"

func TestHBaseStartsAgainOverAKill(t *testing.T) {
	s := Start(t, "hbase", "hbase.regionserver.handler.count=11")
	port, zk := s.Port, s.Facts["zookeeper"]
	s.Kill()
	s.Restart()
	if s.Port != port || s.Facts["zookeeper"] != zk {
		t.Errorf("got port %d, ZooKeeper %s, want %d, %s", s.Port, s.Facts["zookeeper"], port, zk)
	}
}
