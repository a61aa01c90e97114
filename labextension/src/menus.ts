/** Menus that are made for one use: they give the keyboard back, and are gone when they close. */

import type { Menu } from '@lumino/widgets';

/**
 * Open a menu at a place of the page.
 *
 * @param back - What has the keyboard afterwards: what had it before, unless it is named.
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
    // Not now: the entry that was chosen is executed after the menu has closed.
    setTimeout(() => {
      menu.dispose();
    }, 0);
  });
  menu.open(x, y);
}
