// The page begins here.
import { html, render } from "#vendor/htm-preact";
import { site } from "#answers";
import { App } from "#app";
import { Failed } from "#bits";
import { connect } from "#provider";

const root = /** @type {HTMLElement} */ (document.getElementById("page"));
try {
  site.provider = await connect();
  site.about = await site.provider.get("about", {});
  root.replaceChildren();
  render(html`<${App} />`, root);
} catch (error) {
  root.replaceChildren();
  render(html`<main class="opening"><${Failed} error=${error} /></main>`, root);
}
