package submarine.minicluster;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashSet;
import java.util.Set;
import org.apache.kerby.kerberos.kerb.KrbException;
import org.apache.kerby.kerberos.kerb.server.KdcConfigKey;
import org.apache.kerby.kerberos.kerb.server.SimpleKdcServer;

/**
 * Key distribution center of a minicluster: REALM PORT TICKET_SECONDS RENEWABLE_SECONDS DIRECTORY.
 *
 * <p>DIRECTORY/principals has a line "PRINCIPAL PASSWORD KEYTAB" for each principal. A line may be
 * added while the process runs. The keytab is written after the principal exists. Keys are derived
 * from the passwords, so that keytabs and tickets stay valid after a restart.
 */
public final class Kdc {
  private static final long POLL_MS = 100;

  private final SimpleKdcServer server;
  private final String realm;
  private final Path directory;
  private final Set<String> known = new HashSet<>();

  private Kdc(String realm, int port, long ticketSeconds, long renewableSeconds, Path directory)
      throws KrbException, IOException {
    this.realm = realm;
    this.directory = directory;
    server = new SimpleKdcServer();
    // The server writes its own krb5.conf there, which lacks what clients need.
    server.setWorkDir(Files.createDirectories(directory.resolve("kdc")).toFile());
    server.setKdcHost("127.0.0.1");
    server.setKdcRealm(realm);
    server.setKdcTcpPort(port);
    server.setAllowUdp(false);
    server.getKdcConfig().setLong(KdcConfigKey.MAXIMUM_TICKET_LIFETIME, ticketSeconds);
    server.getKdcConfig().setLong(KdcConfigKey.MAXIMUM_RENEWABLE_LIFETIME, renewableSeconds);
    server.getKdcConfig().setLong(KdcConfigKey.MINIMUM_TICKET_LIFETIME, 1L);
    server.getKdcConfig().setString(
        KdcConfigKey.ENCRYPTION_TYPES, "aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha1-96");
    server.init();
  }

  private void addPrincipals() throws KrbException, IOException {
    for (String line : Files.readAllLines(directory.resolve("principals"))) {
      String[] words = line.split(" ");
      if (words.length != 3 || !known.add(words[0])) {
        continue;
      }
      if (words[0].startsWith("krbtgt/")) {
        // Exists already, with a random key.
        server.getKadmin().changePassword(words[0] + "@" + realm, words[1]);
        continue;
      }
      server.createPrincipal(words[0], words[1]);
      File draft = directory.resolve(words[2] + ".new").toFile();
      Files.deleteIfExists(draft.toPath());
      server.exportPrincipal(words[0], draft);
      Files.setPosixFilePermissions(
          draft.toPath(), PosixFilePermissions.fromString("rw-------"));
      Files.move(
          draft.toPath(),
          directory.resolve(words[2]),
          StandardCopyOption.ATOMIC_MOVE,
          StandardCopyOption.REPLACE_EXISTING);
    }
  }

  private void run() throws KrbException, IOException, InterruptedException {
    File list = directory.resolve("principals").toFile();
    long read = list.lastModified();
    addPrincipals();
    server.start();
    while (true) {
      Thread.sleep(POLL_MS);
      long changed = list.lastModified();
      if (changed != read) {
        read = changed;
        addPrincipals();
      }
    }
  }

  public static void main(String[] words) throws Exception {
    new Kdc(
            words[0],
            Integer.parseInt(words[1]),
            Long.parseLong(words[2]),
            Long.parseLong(words[3]),
            Path.of(words[4]))
        .run();
  }
}
