from .command import predict as predict
