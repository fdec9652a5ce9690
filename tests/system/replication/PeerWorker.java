import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Does with RocketMQ's own client what a worker of RocketMQ Connect does with it (its classes BrokerBasedLog and
 * WorkerSinkTask, commit 85da68c). A command a line, and "." behind each:
 *   put TOPIC KEY VALUE    stores a record of the worker's, both in Base64
 *   take GROUP TOPIC N     a sink reads N messages, prints them in Base64, and commits its offsets; it stays connected
 *   leave                  and stops
 * Run from source: java -cp "JARS/*" PeerWorker.java NAME_SERVERS
 */
public class PeerWorker {
    private static DefaultMQProducer producer;
    private static DefaultLitePullConsumer consumer;

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "put": put(arguments[0], words[1], words[2], words[3]); break;
                case "take": take(arguments[0], words[1], words[2], Integer.parseInt(words[3])); break;
                default: consumer.shutdown();
            }
            System.out.println(".");
            System.out.flush();
        }
        System.exit(0);
    }

    private static void put(String nameServers, String topic, String key, String value) throws Exception {
        if (producer == null) {
            producer = new DefaultMQProducer("connector-producer-group");
            producer.setNamesrvAddr(nameServers);
            producer.start();
        }
        Message message = new Message(topic, null, key, Base64.getDecoder().decode(value));
        SendStatus sent = producer.send(message, new SelectMessageQueueByHash(), key).getSendStatus();
        if (sent != SendStatus.SEND_OK) {
            throw new IllegalStateException(String.valueOf(sent));
        }
    }

    private static void take(String nameServers, String group, String topic, int count) throws Exception {
        consumer = new DefaultLitePullConsumer(group);
        consumer.setNamesrvAddr(nameServers);
        consumer.setAutoCommit(false);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.start();
        Map<MessageQueue, Long> taken = new HashMap<>();
        int left = count;
        while (left > 0) {
            List<MessageExt> messages = consumer.poll(1000);
            for (MessageExt message : messages.subList(0, Math.min(left, messages.size()))) {
                System.out.println(Base64.getEncoder().encodeToString(message.getBody()));
                taken.put(new MessageQueue(topic, message.getBrokerName(), message.getQueueId()), message.getQueueOffset() + 1);
                left--;
            }
        }
        for (Map.Entry<MessageQueue, Long> one : taken.entrySet()) {
            consumer.getOffsetStore().updateOffset(one.getKey(), one.getValue(), true);
            consumer.getOffsetStore().updateConsumeOffsetToBroker(one.getKey(), one.getValue(), false);
        }
    }
}
