import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.crypto.KeyAccessDeniedException;
import org.apache.parquet.crypto.keytools.KeyToolkit;
import org.apache.parquet.crypto.keytools.KmsClient;

/** A KMS for tests: master keys come from the option test.kms.keys, "name:base64,name:base64". */
public class TestKms implements KmsClient {
  private final Map<String, byte[]> keys = new HashMap<>();

  @Override
  public void initialize(Configuration conf, String instanceId, String instanceUrl, String token) {
    for (String entry : conf.getTrimmedStrings("test.kms.keys")) {
      int colon = entry.indexOf(':');
      keys.put(entry.substring(0, colon), Base64.getDecoder().decode(entry.substring(colon + 1)));
    }
  }

  @Override
  public String wrapKey(byte[] key, String name) {
    return KeyToolkit.encryptKeyLocally(key, master(name), aad(name));
  }

  @Override
  public byte[] unwrapKey(String wrapped, String name) {
    return KeyToolkit.decryptKeyLocally(wrapped, master(name), aad(name));
  }

  private byte[] master(String name) {
    byte[] key = keys.get(name);
    if (key == null) {
      throw new KeyAccessDeniedException("no master key " + name);
    }
    return key;
  }

  private static byte[] aad(String name) {
    return name.getBytes(StandardCharsets.UTF_8);
  }
}
