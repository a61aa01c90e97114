/** Icons of states. The shapes differ, so that they do not depend on color. */

import React from 'react';
import type { State } from '../api/record';
import { tone } from './labels';

const SHAPES: Record<ReturnType<typeof tone>, string> = {
  // Hourglass, triangle, check mark, cross, square, question mark.
  wait: 'M4 2h8v2.5L9.2 8 12 11.5V14H4v-2.5L6.8 8 4 4.5z',
  go: 'M4.5 2.8v10.4L13 8z',
  good: 'M6.4 12.6 2 8.2l1.6-1.6 2.8 2.8 6-6L14 5z',
  bad: 'M3.9 2.5 8 6.6l4.1-4.1 1.4 1.4L9.4 8l4.1 4.1-1.4 1.4L8 9.4l-4.1 4.1-1.4-1.4L6.6 8 2.5 3.9z',
  quiet: 'M3 3h10v10H3z',
  doubt:
    'M8 1.8c2.4 0 4 1.4 4 3.5 0 1.5-.8 2.3-1.8 3-.9.7-1.2 1-1.2 1.9H7c0-1.7.7-2.4 1.7-3.2.8-.6 1.2-.9 1.2-1.7 0-.9-.7-1.5-1.9-1.5S6 4.5 5.9 5.6H3.9C4 3.2 5.7 1.8 8 1.8zM7 12h2.1v2.1H7z'
};

type Tone = ReturnType<typeof tone>;

export function StateIcon(props: { state: State }): React.ReactElement {
  return <ToneIcon tone={tone(props.state)} />;
}

function ToneIcon(props: { tone: Tone }): React.ReactElement {
  return (
    <svg
      className={`jp-Submarine-icon jp-Submarine-tone-${props.tone}`}
      viewBox="0 0 16 16"
      aria-hidden="true"
      focusable="false"
    >
      <path d={SHAPES[props.tone]} />
    </svg>
  );
}

/** A state as icon and text. */
export function StatePill(props: { state: State }): React.ReactElement {
  return <Pill tone={tone(props.state)} words={props.state} />;
}

/** Text with the icon and the color of a tone. */
export function Pill(props: { tone: Tone; words: string }): React.ReactElement {
  return (
    <span className={`jp-Submarine-pill jp-Submarine-tone-${props.tone}`}>
      <ToneIcon tone={props.tone} />
      {props.words}
    </span>
  );
}
