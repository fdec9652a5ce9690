import com.hivemq.embedded.EmbeddedHiveMQ;
import java.nio.file.Path;

/**
 * HiveMQ CE that lets everybody in: the class that it has for servers refuses all clients without an extension.
 *
 * Run from source: java -cp "JARS/*" HiveMQ.java FOLDER (with conf/, data/ and extensions/ in it)
 */
public class HiveMQ {
    public static void main(String[] arguments) {
        Path folder = Path.of(arguments[0]);
        EmbeddedHiveMQ.builder()
            .withConfigurationFolder(folder.resolve("conf"))
            .withDataFolder(folder.resolve("data"))
            .withExtensionsFolder(folder.resolve("extensions"))
            .build()
            .start()
            .join();
    }
}
