import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import jdk.jshell.EvalException;
import jdk.jshell.JShell;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.SourceCodeAnalysis;
import sun.misc.Signal;

/** Java that stays: a JShell in this process, fed from descriptor 3, heard of on descriptor 4. */
public class Interpreter {
    private final JShell shell = JShell.builder().executionEngine("local").out(System.out).err(System.err).build();
    private final InputStream requests = new BufferedInputStream(new FileInputStream("/dev/fd/3"));
    private final OutputStream events = new FileOutputStream("/dev/fd/4");

    private Interpreter() throws IOException {
        Signal.handle(new Signal("INT"), signal -> shell.stop());
        for (String name : new String[] {"java.io.*", "java.math.*", "java.nio.file.*", "java.util.*",
                "java.util.concurrent.*", "java.util.function.*", "java.util.regex.*", "java.util.stream.*"})
            shell.eval("import " + name + ";");
    }

    /** A field of a request, or null at the end of all requests. */
    private String field() throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        int c;
        while ((c = requests.read()) > 0)
            out.write(c);
        return c < 0 ? null : out.toString(StandardCharsets.UTF_8);
    }

    private Map<String, String> variables() throws IOException {
        Map<String, String> all = new HashMap<>();
        for (String pair; (pair = field()) != null && !pair.isEmpty();)
            all.put(pair.substring(0, pair.indexOf('=')), pair.substring(pair.indexOf('=') + 1));
        return all;
    }

    /** The process's variables cannot be changed in Java; the map that it shows can. */
    @SuppressWarnings("unchecked")
    private static Map<String, String> put(Map<String, String> env) {
        Map<String, String> before = new HashMap<>();
        try {
            Field inner = System.getenv().getClass().getDeclaredField("m");
            inner.setAccessible(true);
            Map<String, String> map = (Map<String, String>) inner.get(System.getenv());
            env.forEach((name, value) -> {
                before.put(name, map.get(name));
                if (value == null)
                    map.remove(name);
                else
                    map.put(name, value);
            });
        } catch (ReflectiveOperationException e) {
            System.err.println("variables cannot be set in this Java: " + e.getMessage());
        }
        return before;
    }

    /** As E2B's Java has them. Those that were there before; null: none was. */
    private static Map<String, String> putProperties(Map<String, String> env) {
        Map<String, String> before = new HashMap<>();
        env.forEach((name, value) -> {
            if (name.isEmpty())
                return;
            before.put(name, value == null ? System.clearProperty(name) : System.setProperty(name, value));
        });
        return before;
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray())
            out.append(c == '"' || c == '\\' ? "\\" + c
                : c < ' ' || c > '~' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
        return out.append('"').toString();
    }

    private void tell(String json) throws IOException {
        events.write((json + "\n").getBytes(StandardCharsets.UTF_8));
        events.flush();
    }

    private void tellError(String name, String value, String trace) throws IOException {
        tell("{\"type\":\"error\",\"name\":" + quoted(name) + ",\"value\":" + quoted(value) + ",\"traceback\":"
            + quoted(trace) + "}");
    }

    private void tellException(Throwable thrown) throws IOException {
        boolean wrapped = thrown instanceof EvalException;
        String name = wrapped ? ((EvalException) thrown).getExceptionClassName() : thrown.getClass().getName();
        StringBuilder trace = new StringBuilder(name + ": " + thrown.getMessage());
        for (StackTraceElement e : thrown.getStackTrace())
            trace.append("\n    at ").append(e.getMethodName()).append(" (").append(e.getFileName()).append(':')
                .append(e.getLineNumber()).append(')');
        tellError(name.substring(name.lastIndexOf('.') + 1), String.valueOf(thrown.getMessage()), trace.toString());
    }

    /** The value of an expression, "" for anything else; null when it failed, which was told. */
    private String evaluate(String source) throws IOException {
        String value = "";
        for (SnippetEvent event : shell.eval(source)) {
            if (event.causeSnippet() != null)
                continue; // a snippet of before, looked at again
            if (event.exception() != null) {
                tellException(event.exception());
                return null;
            }
            if (event.status() == Snippet.Status.REJECTED) {
                String why = shell.diagnostics(event.snippet()).map(d -> d.getMessage(Locale.ENGLISH))
                    .collect(Collectors.joining("\n"));
                tellError("CompilationError", why.lines().findFirst().orElse("rejected"), source.strip() + "\n" + why);
                return null;
            }
            boolean expression = event.snippet().kind() == Snippet.Kind.EXPRESSION
                || event.snippet().subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
            value = expression && event.value() != null ? event.value() : "";
        }
        return value;
    }

    private void run(String code) throws IOException {
        String rest = code, value = "";
        while (value != null && !rest.isBlank()) {
            SourceCodeAnalysis.CompletionInfo found = shell.sourceCodeAnalysis().analyzeCompletion(rest);
            boolean whole = found.completeness().isComplete();
            value = evaluate(whole ? found.source() : rest);
            rest = whole ? found.remaining() : "";
        }
        if (value != null && !value.isEmpty())
            tell("{\"type\":\"result\",\"main\":true,\"data\":{\"text/plain\":" + quoted(value) + "}}");
    }

    private void serve() throws IOException {
        System.getenv().forEach((name, value) -> System.getProperties().putIfAbsent(name, value));
        tell("ready");
        for (String mark; (mark = field()) != null;) {
            Map<String, String> news = variables(), own = variables();
            put(news);
            putProperties(news);
            Map<String, String> before = put(own), properties = putProperties(own);
            run(field());
            put(before);
            putProperties(properties);
            System.out.print(mark);
            System.out.flush();
            System.err.print(mark);
            System.err.flush();
            tell("{\"type\":\"done\"}");
        }
        System.exit(0);
    }

    public static void main(String[] args) throws IOException {
        new Interpreter().serve();
    }
}
