import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Base64;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Prints every message of the topics named on standard input, as RocketMQ's own client sees them:
 * "broker queueId queueOffset body" a message (the body in Base64), then "." or "! what failed".
 * Run from source: java -cp "JARS/*" TopicReader.java NAME_SERVERS
 */
public class TopicReader {
    public static void main(String[] arguments) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("fault-kit-reader");
        consumer.setNamesrvAddr(arguments[0]);
        consumer.start();
        PrintStream out = new PrintStream(System.out, false);
        BufferedReader topics = new BufferedReader(new InputStreamReader(System.in));
        for (String topic = topics.readLine(); topic != null; topic = topics.readLine()) {
            try {
                for (MessageQueue queue : queuesOf(consumer, topic)) {
                    print(consumer, queue, out);
                }
                out.println(".");
            } catch (Exception error) {
                out.println("! " + String.valueOf(error).replace('\n', ' '));
            }
            out.flush();
        }
        consumer.shutdown();
    }

    /** A client that waits for its name server for three seconds says that there is no such topic. */
    private static TreeSet<MessageQueue> queuesOf(DefaultMQPullConsumer consumer, String topic) throws Exception {
        for (int left = 4; ; left--) {
            try {
                return new TreeSet<>(consumer.fetchSubscribeMessageQueues(topic));
            } catch (MQClientException error) {
                if (left == 0) {
                    throw error;
                }
                Thread.sleep(1000);
            }
        }
    }

    private static void print(DefaultMQPullConsumer consumer, MessageQueue queue, PrintStream out) throws Exception {
        long offset = consumer.minOffset(queue);
        long end = consumer.maxOffset(queue);
        Base64.Encoder base64 = Base64.getEncoder();
        while (offset < end) {
            PullResult pulled = consumer.pull(queue, "*", offset, 1024);
            if (pulled.getMsgFoundList() != null) {
                for (MessageExt message : pulled.getMsgFoundList()) {
                    out.print(queue.getBrokerName() + " " + queue.getQueueId() + " " + message.getQueueOffset() + " ");
                    out.println(base64.encodeToString(message.getBody()));
                }
            }
            if (pulled.getNextBeginOffset() <= offset) {
                throw new IllegalStateException(queue + " at " + offset + " of " + end + ": " + pulled.getPullStatus());
            }
            offset = pulled.getNextBeginOffset();
        }
    }
}
