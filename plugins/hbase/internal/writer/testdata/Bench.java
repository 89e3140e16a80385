import java.lang.management.ManagementFactory;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.*;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.util.Bytes;

/** Writes rows of ten cells with HBase's own client, or scans them: KIND TABLE ROWS; prints seconds and CPU seconds. */
public class Bench {
  public static void main(String[] args) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    int rows = Integer.parseInt(args[2]);
    try (Connection conn = ConnectionFactory.createConnection(conf)) {
      TableName name = TableName.valueOf(args[1]);
      try (Admin admin = conn.getAdmin()) {
        if (!admin.tableExists(name)) { // with the settings that the writer gives its own
          admin.createTable(TableDescriptorBuilder.newBuilder(name)
              .setValue("hbase.hstore.time.to.purge.deletes", "1")
              .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytes("d")).setKeepDeletedCells(KeepDeletedCells.TRUE).build())
              .build());
        }
      }
      run(conn, args[0], name, rows / 5, -1); // warm
      var os = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
      long cpu = os.getProcessCpuTime();
      long began = System.nanoTime();
      run(conn, args[0], name, rows, 0);
      System.out.printf(Locale.ROOT, "%.3f %.3f%n", (System.nanoTime() - began) / 1e9, (os.getProcessCpuTime() - cpu) / 1e9);
    }
  }

  static void run(Connection conn, String kind, TableName name, int rows, int sign) throws Exception {
    if (kind.equals("scan")) {
      try (Table t = conn.getTable(name); ResultScanner s = t.getScanner(new Scan().setCaching(1000))) {
        long bytes = 0;
        for (Result r : s) {
          for (Cell c : r.rawCells()) {
            bytes += c.getValueLength();
          }
        }
        if (bytes == 0) {
          throw new IllegalStateException("nothing there");
        }
      }
      return;
    }
    if (kind.equals("buffered")) {
      try (BufferedMutator m = conn.getBufferedMutator(name)) {
        for (int i = 0; i < rows; i++) {
          m.mutate(put(i, sign));
        }
      }
      return;
    }
    try (Table t = conn.getTable(name)) {
      List<Put> list = new ArrayList<>(1000);
      for (int i = 0; i < rows; i++) {
        list.add(put(i, sign));
        if (list.size() == 1000 || i == rows - 1) {
          t.put(list);
          list = new ArrayList<>(1000);
        }
      }
    }
  }

  static Put put(int i, int sign) {
    String id = String.format("%s%012d", sign < 0 ? "w" : "r", i);
    Put p = new Put(Bytes.toBytes(id));
    byte[] f = Bytes.toBytes("d");
    p.addColumn(f, Bytes.toBytes("id"), 1000, Bytes.toBytes(id));
    for (int c = 0; c < 9; c++) {
      p.addColumn(f, Bytes.toBytes("column" + c), 1000, Bytes.toBytes("value " + c + " of row " + id + ", padded!"));
    }
    return p;
  }
}
