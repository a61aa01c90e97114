// Submit a job to the server extension: Scala 2.13 on JDK 11 or newer; no library.
//
//     scalac SubmitJob.scala
//     SUBMARINE_TOKEN=... scala SubmitJob http://127.0.0.1:8888/ train.zip '{"worker": 2}' REQUEST-ID
//
// The request id is chosen by the caller, one for each job: the same request gets the same job.

import java.net.URI
import java.net.http.{HttpClient, HttpRequest, HttpResponse}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.time.Duration
import java.util.UUID

object SubmitJob {
  def main(words: Array[String]): Unit = {
    val (server, bundle, options, requestId) = (words(0), words(1), words(2), words(3))
    val boundary = UUID.randomUUID.toString

    def part(name: String, content: Array[Byte]): Array[Byte] =
      s"--$boundary\r\nContent-Disposition: form-data; $name\r\n\r\n".getBytes(UTF_8) ++
        content ++ "\r\n".getBytes(UTF_8)

    val body = part("name=\"options\"", options.getBytes(UTF_8)) ++
      part("name=\"bundle\"; filename=\"bundle.zip\"", Files.readAllBytes(Path.of(bundle))) ++
      s"--$boundary--\r\n".getBytes(UTF_8)
    val request = HttpRequest
      .newBuilder(URI.create(server.stripSuffix("/") + "/submarine/api/v1/jobs"))
      .timeout(Duration.ofSeconds(150))
      .header("Authorization", "token " + sys.env("SUBMARINE_TOKEN"))
      .header("Idempotency-Key", requestId)
      .header("Content-Type", s"multipart/form-data; boundary=$boundary")
      .POST(HttpRequest.BodyPublishers.ofByteArray(body))
      .build
    val client = HttpClient.newBuilder.version(HttpClient.Version.HTTP_1_1).build
    val response = client.send(request, HttpResponse.BodyHandlers.ofString)
    println(response.body)
    sys.exit(if (response.statusCode == 201) 0 else 1)
  }
}
