/** Read a stream of JSON lines as it arrives. */

/** Maximum length of a line. */
const MAX_LINE = 1 << 20;

/** Yield the value of each line as soon as the line is complete; skip blank lines. */
export async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  let ended = false;
  try {
    while (!ended) {
      const { done, value } = await reader.read();
      ended = done;
      rest += decoder.decode(value, { stream: !done });
      const lines = rest.split('\n');
      rest = done ? '' : (lines.pop() ?? '');
      for (const line of lines) {
        if (line.trim()) {
          yield JSON.parse(line) as unknown;
        }
      }
      if (rest.length > MAX_LINE) {
        throw new Error('The answer holds a line of more than 1 MiB.');
      }
    }
  } finally {
    // Ends the search on the server if the caller stops reading.
    await reader.cancel().catch(() => undefined);
  }
}
