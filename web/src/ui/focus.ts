/** There is one prompt field on the page. It is found by this id. */
export const COMPOSER_ID = 'composer';

export function composerField(): HTMLTextAreaElement | null {
  const field = document.getElementById(COMPOSER_ID);
  return field instanceof HTMLTextAreaElement ? field : null;
}

/** What a dialog focuses when it closes: the composer, so that one types on. By touch that would open the screen keyboard. */
export function afterDialog(by: string): HTMLElement | true {
  return by === 'touch' ? true : (composerField() ?? true);
}
