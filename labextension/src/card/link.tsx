/** A link that opens a web address in a new tab; other addresses are shown as text. */

import React from 'react';

export function Link(props: {
  url: string | null | undefined;
  className?: string;
  title?: string;
  children: React.ReactNode;
}): React.ReactElement {
  const href = safeLink(props.url);
  if (!href) {
    return <>{props.children}</>;
  }
  return (
    <a
      href={href}
      target="_blank"
      rel="noopener noreferrer"
      className={props.className}
      title={props.title ?? href}
    >
      {props.children}
    </a>
  );
}

/** Longest address of a link, in characters. */
const MAX_LENGTH = 2000;

/**
 * The address if it is a plain web address, otherwise undefined.
 *
 * Addresses with a user name are rejected because they mislead:
 * `https://bank.example@evil.example`.
 */
export function safeLink(url: string | null | undefined): string | undefined {
  // `new URL` removes these characters, so that the visible address would differ from its target.
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
