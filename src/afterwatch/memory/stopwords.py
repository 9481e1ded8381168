"""English function words that are left out of keyword queries (never out of the index)."""

STOP_WORDS = frozenset(
    """
    a about above after again against all also am an and any are aren as at be because been before being
    below between both but by can could couldn d did didn do does doesn doing don down during each either
    ever few for from further get gets getting got had hadn has hasn have haven having he her here hers
    herself him himself his how i if in into is isn it its itself just ll m may me might more most much must
    mustn my myself neither no nor not now of off on once only or other our ours ourselves out over own re s
    same shall she should shouldn so some such t than that the their theirs them themselves then there these
    they this those through to too under until up us use ve very was wasn we were weren what whatever when
    whenever where which while who whoever whom whose why will with within without won would wouldn yes yet
    you your yours yourself yourselves
    kind lot like likely really thing things way ways tell know let lets going go goes went please
    """.split()
)
