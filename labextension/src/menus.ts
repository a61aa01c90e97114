/** Menus for one use: they restore the focus and are disposed when they close. */

import type { Menu } from '@lumino/widgets';

/**
 * Open a menu at a position of the page.
 *
 * @param back - Element that gets the focus afterwards; default: the one that has it now.
 */
export function openMenu(
  menu: Menu,
  x: number,
  y: number,
  back: Element | null = document.activeElement
): void {
  menu.aboutToClose.connect(() => {
    if (back instanceof HTMLElement) {
      back.focus();
    }
    // Dispose later: the selected command is executed after the menu has closed.
    setTimeout(() => {
      menu.dispose();
    }, 0);
  });
  menu.open(x, y);
}
