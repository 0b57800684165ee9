import { common, createLowlight } from 'lowlight';

/** A module of its own, which is loaded when there is code to highlight. It sets classes; styles.css has the colours. */
const lowlight = createLowlight(common);

/** A tree of texts and elements with classes; null: the language is not supported. */
export function highlight(text: string, language: string) {
  const name = language.toLowerCase();
  return lowlight.registered(name) ? lowlight.highlight(name, text) : null;
}
