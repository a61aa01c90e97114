/** A search query, and the expression that highlights its matches in visible lines. */

export interface IQuery {
  readonly text: string;
  readonly regex: boolean;
  readonly matchCase: boolean;
}

/** Lines that report errors; same pattern as the server's preset. */
export const ERROR_QUERY: IQuery = {
  text: [
    String.raw`Traceback \(most recent call last\)`,
    String.raw`\b[A-Z][A-Za-z]*(?:Error|Exception)\b`,
    String.raw`\b(?:ERROR|FATAL|CRITICAL|Error|Exception|Killed|Aborted)\b`,
    String.raw`\b(?:CUDA|NCCL|cuDNN) error\b`,
    String.raw`\b[Oo]ut of memory\b`,
    String.raw`\bSegmentation fault\b|\bcore dumped\b`
  ].join('|'),
  regex: true,
  matchCase: true
};

/** The expression that highlights the matches; null if the browser does not support it. */
export function markOf(query: IQuery | null): RegExp | null {
  if (query === null || query.text === '') {
    return null;
  }
  const source = query.regex ? query.text : query.text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  try {
    return new RegExp(source, query.matchCase ? 'gu' : 'giu');
  } catch {
    return null;
  }
}
