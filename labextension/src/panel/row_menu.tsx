/**
 * The menu button of the row with the keyboard focus. It is placed over the row: an option of a
 * list box must not contain a button.
 */

import { ellipsesIcon } from '@jupyterlab/ui-components';
import React from 'react';

export function RowMenu(props: {
  /** Label with the name of the job. */
  label: string;
  /** Distance from the edges of the frame in pixels. */
  top: number;
  right: number;
  onOpen: () => void;
}): React.ReactElement {
  const open = (event: React.SyntheticEvent): void => {
    event.preventDefault();
    event.stopPropagation();
    props.onOpen();
  };
  return (
    <button
      type="button"
      className="jp-Submarine-jobs-menuButton"
      aria-haspopup="menu"
      aria-label={props.label}
      title={props.label}
      style={{ top: props.top, right: props.right }}
      onClick={open}
      onContextMenu={open}
      onKeyDown={event => {
        if (event.key === 'ContextMenu' || (event.shiftKey && event.key === 'F10')) {
          open(event);
        }
      }}
    >
      <ellipsesIcon.react tag="span" width="16px" />
    </button>
  );
}
