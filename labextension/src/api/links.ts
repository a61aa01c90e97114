/** Links to addresses that a cluster or a job names: only the web, in a tab that cannot reach us. */

const MAX_LENGTH = 2000;

/**
 * The address if a browser may be sent there, else nothing.
 *
 * One with a user's name is not what it looks like: `https://bank.example@evil.example`.
 */
export function safeLink(url: string | null | undefined): string | undefined {
  // `new URL` takes these away, so that what is read is not where it leads.
  // eslint-disable-next-line no-control-regex
  if (!url || url.length > MAX_LENGTH || /[\s\\\u0000-\u001f\u007f-\u009f\p{Cf}]/u.test(url)) {
    return undefined;
  }
  try {
    const { protocol, href, username, password } = new URL(url);
    const web = protocol === 'http:' || protocol === 'https:';
    return web && username === '' && password === '' ? href : undefined;
  } catch {
    return undefined;
  }
}
