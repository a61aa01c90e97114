/** Reads a stream of JSON lines as it arrives; what the lines mean is the caller's. */

/** Longer lines are nobody's search hit. */
const MAX_LINE = 1 << 20;

/** Each line's value as soon as its line is complete; blank lines are skipped. */
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
    // Whoever stops listening stops the server's work too.
    await reader.cancel().catch(() => undefined);
  }
}
