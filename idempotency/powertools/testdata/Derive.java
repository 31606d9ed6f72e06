import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;

// Writes to standard output what Powertools for Java hashes each line of values.txt to. That is what generateHash does in
// BasePersistenceStore of powertools-idempotency-core, release 2. Usage: java -cp JACKSON Derive.java <values.txt >java.txt
class Derive {
    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode data = mapper.readTree(line);
            // Of all that is no container, asText returns what toString returns of the Java value.
            String text = data.isContainerNode() ? data.toString() : data.asText();
            byte[] digest = MessageDigest.getInstance("MD5").digest(text.getBytes(StandardCharsets.UTF_8));
            System.out.println(String.format("%032x", new BigInteger(1, digest)));
        }
    }
}
