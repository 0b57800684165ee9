import { fileURLToPath } from 'node:url';
import tailwind from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// Builds the page that `throughline serve` serves from `dist/page`. Nothing is inlined: the Content-Security-Policy allows no inline
// scripts and styles.
export default defineConfig({
  root: at('.'),
  // Vite minifies the styles. Tailwind's own optimizer warns about ::highlight(), which it does not support.
  plugins: [react(), tailwind({ optimize: false })],
  resolve: { alias: { 'throughline/client': at('../src/client.ts') } },
  build: {
    outDir: at('../dist/page'),
    emptyOutDir: true,
    target: 'es2023',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
