/** Links to addresses that a cluster or a job names: only the web, in a tab that cannot reach us. */

/** The address if a browser may be sent there, else nothing. */
export function safeLink(url: string | null | undefined): string | undefined {
  if (!url) {
    return undefined;
  }
  try {
    const { protocol, href } = new URL(url);
    return protocol === 'http:' || protocol === 'https:' ? href : undefined;
  } catch {
    return undefined;
  }
}
