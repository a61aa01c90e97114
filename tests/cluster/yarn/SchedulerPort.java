import java.net.InetSocketAddress;
import java.util.HexFormat;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.ipc.Server;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.SecretManager;
import org.apache.hadoop.yarn.api.ApplicationMasterProtocol;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.protocolrecords.FinishApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.FinishApplicationMasterResponse;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterResponse;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.ipc.YarnRPC;
import org.apache.hadoop.yarn.security.AMRMTokenIdentifier;

/** Hadoop's RPC server of a scheduler port; prints each unregistration, and ends with stdin. */
public class SchedulerPort implements ApplicationMasterProtocol {
  private static final byte[] PASSWORD = "the password of a token".getBytes();
  private int calls;

  public FinishApplicationMasterResponse finishApplicationMaster(
      FinishApplicationMasterRequest request) throws java.io.IOException {
    calls++;
    System.out.println(
        String.join(
            "\t",
            UserGroupInformation.getCurrentUser().getUserName(),
            request.getFinalApplicationStatus().toString(),
            request.getDiagnostics(),
            request.getTrackingUrl()));
    return FinishApplicationMasterResponse.newInstance(calls > 1);
  }

  public RegisterApplicationMasterResponse registerApplicationMaster(
      RegisterApplicationMasterRequest request) {
    throw new UnsupportedOperationException();
  }

  public AllocateResponse allocate(AllocateRequest request) {
    throw new UnsupportedOperationException();
  }

  /** The password is the same for each token. */
  private static class Secrets extends SecretManager<AMRMTokenIdentifier> {
    protected byte[] createPassword(AMRMTokenIdentifier identifier) {
      return PASSWORD;
    }

    public byte[] retrievePassword(AMRMTokenIdentifier identifier) {
      return PASSWORD;
    }

    public AMRMTokenIdentifier createIdentifier() {
      return new AMRMTokenIdentifier();
    }
  }

  public static void main(String[] words) throws Exception {
    Configuration conf = new Configuration();
    conf.set("hadoop.rpc.protection", words[0]);
    UserGroupInformation.setConfiguration(conf);
    Server server =
        YarnRPC.create(conf)
            .getServer(
                ApplicationMasterProtocol.class,
                new SchedulerPort(),
                new InetSocketAddress("127.0.0.1", 0),
                conf,
                new Secrets(),
                1);
    server.start();
    ApplicationAttemptId attempt =
        ApplicationAttemptId.newInstance(ApplicationId.newInstance(1, 1), 1);
    HexFormat hex = HexFormat.of();
    byte[] identifier = new AMRMTokenIdentifier(attempt, 1).getBytes();
    System.out.println(
        server.getListenerAddress().getPort()
            + " "
            + hex.formatHex(identifier)
            + " "
            + hex.formatHex(PASSWORD));
    while (System.in.read() >= 0) {}
    server.stop();
  }
}
