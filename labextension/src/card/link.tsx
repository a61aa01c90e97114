/** A link that opens a web address in a new tab; other addresses are shown as text. */

import React from 'react';
import { safeLink } from '../api/links';

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
