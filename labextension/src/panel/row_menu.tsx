/**
 * The button that opens the menu of the row at which the keyboard is. It lies over that row and not in
 * it: an entry of a list box may not hold a button.
 */

import { ellipsesIcon } from '@jupyterlab/ui-components';
import React from 'react';

export function RowMenu(props: {
  /** What it does, with the job's name. */
  label: string;
  /** Pixels from the frame's edges. */
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
