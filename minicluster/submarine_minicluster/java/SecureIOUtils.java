package org.apache.hadoop.io;

import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.EnumSet;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Replaces Hadoop's class in the NodeManager of a minicluster.
 *
 * <p>With Kerberos, Hadoop's class opens a container's log only with its native library and only if
 * the log's owner in the operating system is the Hadoop user. In a minicluster one user of the
 * operating system owns all files, so this class does not compare owners.
 */
public class SecureIOUtils {
  public static RandomAccessFile openForRandomRead(
      File file, String mode, String owner, String group) throws IOException {
    return new RandomAccessFile(file, mode);
  }

  public static FSDataInputStream openFSDataInputStream(File file, String owner, String group)
      throws IOException {
    return FileSystem.getLocal(new Configuration()).getRaw().open(new Path(file.getPath()));
  }

  public static FileInputStream openForRead(File file, String owner, String group)
      throws IOException {
    return new FileInputStream(file);
  }

  public static FileOutputStream createForWrite(File file, int mode) throws IOException {
    PosixFilePermission[] known = PosixFilePermission.values();
    Set<PosixFilePermission> chosen = EnumSet.noneOf(PosixFilePermission.class);
    for (int bit = 0; bit < known.length; bit++) {
      // The constants are in the order of the letters rwxrwxrwx.
      if ((mode >> (known.length - 1 - bit) & 1) == 1) {
        chosen.add(known[bit]);
      }
    }
    FileAttribute<Set<PosixFilePermission>> permissions =
        PosixFilePermissions.asFileAttribute(chosen);
    try {
      Files.createFile(file.toPath(), permissions);
    } catch (FileAlreadyExistsException error) {
      throw new AlreadyExistsException(error);
    }
    return new FileOutputStream(file);
  }

  /** As in Hadoop's class. */
  public static class AlreadyExistsException extends IOException {
    private static final long serialVersionUID = 1L;

    public AlreadyExistsException(String message) {
      super(message);
    }

    public AlreadyExistsException(Throwable cause) {
      super(cause);
    }
  }
}
