/* The search shows a part of each page that it finds, which it asks the server for. A page from the disk has no server. */
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
