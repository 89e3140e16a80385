import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.*;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.util.Bytes;

/** Writes and prints tables with HBase's own client: write TABLE | print TABLE. */
public class Oracle {
  public static void main(String[] args) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    try (Connection conn = ConnectionFactory.createConnection(conf); Table t = conn.getTable(TableName.valueOf(args[1]))) {
      if (args[0].equals("write")) {
        List<Put> puts = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
          byte[] row = Bytes.add(new byte[] {(byte) i, 0}, Bytes.toBytes("row" + i));
          Put p = new Put(row);
          p.addColumn(Bytes.toBytes("f"), new byte[] {(byte) i}, 1000 + i, Bytes.toBytes((long) i * -7));
          p.addColumn(Bytes.toBytes("f"), Bytes.toBytes("empty"), 5, new byte[0]);
          p.addColumn(Bytes.toBytes("f"), Bytes.toBytes("big"), Long.MAX_VALUE - 1, new byte[i * 100]);
          puts.add(p);
        }
        t.put(puts);
        for (int i = 0; i < 200; i += 10) {
          byte[] row = Bytes.add(new byte[] {(byte) i, 0}, Bytes.toBytes("row" + i));
          Delete d = new Delete(row);
          d.addColumns(Bytes.toBytes("f"), Bytes.toBytes("empty"), 6);
          t.delete(d);
        }
        return;
      }
      Scan scan = new Scan();
      if (args[0].equals("raw")) {
        scan.setRaw(true).readAllVersions();
      }
      StringBuilder out = new StringBuilder();
      for (Result r : t.getScanner(scan)) {
        for (Cell c : r.rawCells()) {
          out.append(hex(CellUtil.cloneRow(c))).append(' ').append(hex(CellUtil.cloneFamily(c))).append(' ').append(hex(CellUtil.cloneQualifier(c)))
              .append(' ').append(c.getTimestamp()).append(' ').append(c.getTypeByte() & 0xff).append(' ').append(hex(CellUtil.cloneValue(c))).append('\n');
        }
      }
      System.out.print(out);
    }
  }

  static String hex(byte[] b) {
    StringBuilder s = new StringBuilder("x");
    for (byte x : b) {
      s.append(String.format("%02x", x));
    }
    return s.toString();
  }
}
