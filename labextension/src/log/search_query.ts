/** What is searched for in a log, and how its matches are found again in a line on the screen. */

export interface IQuery {
  readonly text: string;
  readonly regex: boolean;
  readonly matchCase: boolean;
}

/** What tells of trouble, for people who look for it: the same words as the server's preset. */
export const TROUBLE: IQuery = {
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

/** The expression that marks a query's matches in a line; null where there is none in the browser. */
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
