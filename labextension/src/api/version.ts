/** Which version this front end is, and whether a server's fits it. */

/** The same as in package.json (a test holds them together). */
export const VERSION = '0.1.0';

/** Number of the words on the wire; it changes when old and new cannot talk. */
export const API = 1;

const RELEASE = /^v?(\d+(?:\.\d+)*)[-_.]?(?:(alpha|beta|a|b|rc|dev)[-_.]?(\d*))?/;
const SHORT: Readonly<Record<string, string>> = { alpha: 'a', beta: 'b' };

/** `1.2.0-rc.1` (npm) and `1.2.0rc1` (Python) alike; build details are left out. */
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
