import { common, createLowlight } from 'lowlight';

/** Loaded when there is code to colour. Classes only: the colours are in styles.css. */
const lowlight = createLowlight(common);

/** A tree of texts and elements with classes; null: the language is not known. */
export function highlight(text: string, language: string) {
  const name = language.toLowerCase();
  return lowlight.registered(name) ? lowlight.highlight(name, text) : null;
}
