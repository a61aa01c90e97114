// Submit a job to the server extension and wait for its end. JDK 11 or newer; no library.
//
//     javac --release 11 SubmitJob.java
//     SUBMARINE_TOKEN=... java SubmitJob http://127.0.0.1:8888/ train.zip '{"worker": 2}' REQUEST-ID
//
// The request id is chosen by the caller, one for each job. A program that repeats the request after
// a lost answer, even in another process, gets the same job.

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public final class SubmitJob {
    private static final int ATTEMPTS = 5;

    private final HttpClient client =
            HttpClient.newBuilder()
                    .version(HttpClient.Version.HTTP_1_1)
                    .connectTimeout(Duration.ofSeconds(10))
                    .build();
    private final String api;
    private final String token;

    SubmitJob(String server, String token) {
        this.api = (server.endsWith("/") ? server : server + "/") + "submarine/api/v1/jobs";
        this.token = token;
    }

    public static void main(String[] words) throws Exception {
        SubmitJob jobs = new SubmitJob(words[0], System.getenv("SUBMARINE_TOKEN"));
        String answer = jobs.submit(words[2], Files.readAllBytes(Path.of(words[1])), words[3]);
        System.out.println(answer);
        String state = jobs.waitFor(field(answer, "job_id"));
        System.out.println(state);
        System.exit(state.equals("SUCCEEDED") ? 0 : 1);
    }

    /** Submit a job; repeat the request if the connection fails or the server is busy. */
    String submit(String options, byte[] bundle, String requestId) throws Exception {
        String boundary = UUID.randomUUID().toString();
        // One array has a Content-Length; several arrays would be sent in chunks.
        HttpRequest request =
                request(api)
                        .timeout(Duration.ofSeconds(150))
                        .header("Idempotency-Key", requestId)
                        .header("Content-Type", "multipart/form-data; boundary=" + boundary)
                        .POST(HttpRequest.BodyPublishers.ofByteArray(
                                body(boundary, options, bundle)))
                        .build();
        for (int attempt = 1; ; attempt++) {
            try {
                HttpResponse<String> response = client.send(request, BodyHandlers.ofString());
                if (response.statusCode() == 201) {
                    return response.body();
                }
                if (response.statusCode() < 500 || attempt == ATTEMPTS) {
                    throw new IllegalStateException(response.body());
                }
            } catch (IOException error) {
                if (attempt == ATTEMPTS) {
                    throw error;
                }
            }
            Thread.sleep(1000L * attempt);
        }
    }

    /** Wait for the end of a job; return its state. */
    String waitFor(String job) throws Exception {
        while (true) {
            HttpResponse<String> response =
                    client.send(request(api + "/" + job).build(), BodyHandlers.ofString());
            String state = field(response.body(), "state");
            if (state.matches("SUCCEEDED|FAILED|CANCELLED|LOST")) {
                return state;
            }
            Thread.sleep(1000);
        }
    }

    private HttpRequest.Builder request(String address) {
        return HttpRequest.newBuilder(URI.create(address))
                .timeout(Duration.ofSeconds(30))
                .header("Authorization", "token " + token);
    }

    private static byte[] body(String boundary, String options, byte[] bundle) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(part(boundary, "name=\"options\"", options.getBytes(StandardCharsets.UTF_8)));
        out.write(part(boundary, "name=\"bundle\"; filename=\"bundle.zip\"", bundle));
        out.write(("--" + boundary + "--\r\n").getBytes(StandardCharsets.UTF_8));
        return out.toByteArray();
    }

    private static byte[] part(String boundary, String name, byte[] content) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        String head = "--" + boundary + "\r\nContent-Disposition: form-data; " + name + "\r\n\r\n";
        out.write(head.getBytes(StandardCharsets.UTF_8));
        out.write(content);
        out.write("\r\n".getBytes(StandardCharsets.UTF_8));
        return out.toByteArray();
    }

    /** Return the first field of this name in a JSON text; a program has a parser for that. */
    private static String field(String json, String name) {
        Matcher found = Pattern.compile("\"" + name + "\":\\s*\"([^\"]*)\"").matcher(json);
        if (!found.find()) {
            throw new IllegalStateException(json);
        }
        return found.group(1);
    }
}
