"""The live page: a server that reads run folders, and who may ask it.

guard     who may ask, and how much
listing   which runs there are; what a name from outside may mean
source    one run as JSON and bytes
news      what has come since the last look
live      the same, told to everybody who looks
asked     generating and segmenting, one at a time
answers   data as JSON, mistakes in words
app       all of it as one ASGI application
"""
