"""The inspector: pages in the browser that show what was done to the images of each conversation.

It reads receipts and the record. It changes nothing but consents and settings, after a confirmation.

- `access` opens the pages to the user alone: a link that works once, then a cookie.
- `inspector_app` is the ASGI application: it checks each request, and serves the files in `static` and the API.
- `queries` answers what the pages ask about conversations, images and settings, as JSON.
- `pictures` makes thumbnails in workers, once each.
- `export` writes one conversation as a single HTML file.
"""
