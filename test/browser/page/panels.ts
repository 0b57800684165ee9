import type { Page } from 'playwright-core';

/* The panel of a conversation. On a wide screen it is open at first, on a narrow one it is behind a button. */

export type PanelTab = 'Turns' | 'Changes' | 'Sessions' | 'Usage' | 'Raw';

const MORE: readonly PanelTab[] = ['Usage', 'Raw'];

/** Shows a tab of the panel. */
export async function showPanel(page: Page, tab: PanelTab): Promise<void> {
  const show = page.getByRole('button', { name: 'Show the panel' });
  const tabs = page.getByRole('tab');
  const menu = page.getByRole('button', { name: 'Conversation actions' });
  await menu.or(tabs).first().waitFor();
  if ((await tabs.count()) === 0) {
    // On a phone it is in the menu.
    if (await show.isVisible()) await show.click();
    else {
      await menu.click();
      await page.getByRole('menuitem', { name: 'Show the panel' }).click();
    }
    await tabs.first().waitFor();
  }
  if (!MORE.includes(tab)) return page.getByRole('tab', { name: tab }).click();
  await page.getByRole('button', { name: 'More about the conversation' }).click();
  await page.getByRole('menuitem', { name: tab }).click();
}
