import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.TreeMap;
import sun.misc.Unsafe;

/**
 * Prints the numbers that skein's application master gives to requests of containers: three
 * requests, of which the first is placed, and a fourth one.
 */
public class RequestNumbers {
    public static void main(String[] arguments) throws Exception {
        Class<?> master = Class.forName("com.anaconda.skein.ApplicationMaster");
        Class<?> tracker = Class.forName("com.anaconda.skein.ApplicationMaster$ServiceTracker");
        Class<?> priority = Class.forName("org.apache.hadoop.yarn.api.records.Priority");
        // Without its constructor, which needs a container of YARN.
        Field unsafe = Unsafe.class.getDeclaredField("theUnsafe");
        unsafe.setAccessible(true);
        Object object = ((Unsafe) unsafe.get(null)).allocateInstance(master);
        set(master, object, "priorities", new TreeMap<Object, Object>());
        set(master, object, "nextPriority", 1);
        Method request = method(master, "newPriority", tracker);
        Object first = request.invoke(object, (Object) null);
        StringBuilder numbers = new StringBuilder(first.toString());
        numbers.append(' ').append(request.invoke(object, (Object) null));
        numbers.append(' ').append(request.invoke(object, (Object) null));
        method(master, "removePriority", priority).invoke(object, first);
        method(master, "updatePriorities").invoke(object);
        System.out.println(numbers.append(' ').append(request.invoke(object, (Object) null)));
    }

    private static void set(Class<?> type, Object object, String name, Object value) throws Exception {
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        field.set(object, value);
    }

    private static Method method(Class<?> type, String name, Class<?>... parameters) throws Exception {
        Method found = type.getDeclaredMethod(name, parameters);
        found.setAccessible(true);
        return found;
    }
}
