/** Version of the front end and its compatibility with the server. */

/** Same as in package.json; a test compares them. */
export const VERSION = '0.1.0';

/** Protocol version; changes with each incompatible change. */
export const API = 1;

const RELEASE = /^v?(\d+(?:\.\d+)*)[-_.]?(?:(alpha|beta|a|b|rc|dev)[-_.]?(\d*))?/;
const SHORT: Readonly<Record<string, string>> = { alpha: 'a', beta: 'b' };

/** Normalize npm (`1.2.0-rc.1`) and Python (`1.2.0rc1`) versions; build metadata is removed. */
export function release(version: string): string {
  const match = RELEASE.exec(version.trim().toLowerCase());
  if (!match) {
    return version;
  }
  const stage = match[2];
  return stage ? `${match[1] ?? ''}${SHORT[stage] ?? stage}${match[3] || '0'}` : (match[1] ?? '');
}

/** Whether both are the same release. */
export function sameRelease(one: string, other: string): boolean {
  return release(one) === release(other);
}
