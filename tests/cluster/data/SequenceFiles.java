import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BooleanWritable;
import org.apache.hadoop.io.ByteWritable;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.DoubleWritable;
import org.apache.hadoop.io.FloatWritable;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.SequenceFile.CompressionType;
import org.apache.hadoop.io.ShortWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.VIntWritable;
import org.apache.hadoop.io.VLongWritable;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.util.ReflectionUtils;

/** Write SequenceFiles with Hadoop's classes: each compression and codec, and each class of value. */
public final class SequenceFiles {
  private static final int RECORDS = 5000;

  private static String text(int number) {
    return "é".repeat(number % 300) + number;
  }

  private static Writable value(String name, int number) {
    switch (name) {
      case "BytesWritable": return new BytesWritable(text(number).getBytes(StandardCharsets.UTF_8));
      case "ByteWritable": return new ByteWritable((byte) number);
      case "ShortWritable": return new ShortWritable((short) -number);
      case "IntWritable": return new IntWritable(-number);
      case "VIntWritable": return new VIntWritable(number * 1000 - 70000);
      case "VLongWritable": return new VLongWritable(number * 1000000007L - 70000);
      case "FloatWritable": return new FloatWritable(number / 4f);
      case "DoubleWritable": return new DoubleWritable(number / 3.0);
      case "BooleanWritable": return new BooleanWritable(number % 2 == 0);
      case "NullWritable": return NullWritable.get();
      default: return new Text(text(number));
    }
  }

  private static void write(String path, String kind, CompressionType type, CompressionCodec codec)
      throws Exception {
    Class<?> valueClass = value(kind, 0).getClass();
    try (SequenceFile.Writer writer =
        SequenceFile.createWriter(
            new Configuration(),
            SequenceFile.Writer.file(new Path(path)),
            SequenceFile.Writer.keyClass(LongWritable.class),
            SequenceFile.Writer.valueClass(valueClass),
            SequenceFile.Writer.compression(type, codec))) {
      for (int number = 0; number < RECORDS; number++) {
        writer.append(new LongWritable(number), value(kind, number));
      }
    }
  }

  /** Arguments: a directory, the names of the codecs, "--", the classes of values. */
  public static void main(String[] arguments) throws Exception {
    Configuration configuration = new Configuration();
    String folder = "file://" + arguments[0] + "/";
    boolean kinds = false;
    write(folder + "none.seq", "Text", CompressionType.NONE, null);
    for (int i = 1; i < arguments.length; i++) {
      String name = arguments[i];
      if (name.equals("--")) {
        kinds = true;
      } else if (kinds) {
        write(folder + name + ".seq", name, CompressionType.NONE, null);
      } else {
        try {
          Class<?> found = Class.forName("org.apache.hadoop.io.compress." + name);
          CompressionCodec codec =
              (CompressionCodec) ReflectionUtils.newInstance(found, configuration);
          write(folder + name + "-record.seq", "Text", CompressionType.RECORD, codec);
          write(folder + name + "-block.seq", "Text", CompressionType.BLOCK, codec);
        } catch (RuntimeException | LinkageError error) {
          System.out.println("not here: " + name + ": " + error.getMessage());
        }
      }
    }
  }
}
