"""The board: a local web server that shows the runs of a folder and streams changes to the browser.

A run is the folder of one training. A finding is a result of the analyses in neural/findings.

security      host, origin, token and size checks of every request; security headers
launch        opens the browser without showing the token to other users
rate_limit    token bucket: limits of wrong tokens and of texts
run_index     the runs of a folder; lookup of run names that come from a request
run_cache     opened runs and cached responses
events        server-sent events of one run, of its findings and of the run index
event_stream  pollers of each run, shared by all listeners (open event streams of browsers)
requests      requests to generate or segment text; one job at a time
inference     text generation and segmentation with the networks of runs
responses     JSON encoding and error texts
app           routes, as one ASGI application
"""
