// The search of the site, without a browser: node site_search.js FOLDER WORD... prints the pages of each word, the first first.
const fs = require("fs"), vm = require("vm");
const [folder, ...words] = process.argv.slice(2);
const element = { dataset: { content_root: "./" }, classList: { add() {}, remove() {} }, appendChild() {}, remove() {} };
const context = vm.createContext({
  document: {
    documentElement: element, getElementById: () => null, querySelector: () => null, addEventListener() {},
    readyState: "loading", createElement: () => ({ ...element }),
  },
  addEventListener() {}, console, URLSearchParams, Set, Map, localStorage: { setItem() {}, getItem() {} },
  SPHINX_HIGHLIGHT_ENABLED: false, DOCUMENTATION_OPTIONS: { URL_ROOT: "", LINK_SUFFIX: ".html", FILE_SUFFIX: ".html", HIGHLIGHT_PATH: "" },
});
context.window = context;
for (const name of ["_static/doctools.js", "_static/searchtools.js", "_static/language_data.js", "searchindex.js"]) {
  vm.runInContext(fs.readFileSync(`${folder}/${name}`, "utf8"), context, name);
}
context.words = words;
console.log(vm.runInContext(`JSON.stringify(words.map((word) => {
  const [query, ...terms] = Search._parseQuery(word);
  return Search._performSearch(query, ...terms).reverse().map((found) => found[0]);
}))`, context));
